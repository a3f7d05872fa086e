"""A lock as a Dockerfile: a small image with the locked wheels, and a GPU check at its start.

One file is enough: `printf` writes the requirements and the check line by line. A here-document
would need BuildKit or Buildah 1.33, and Debian 12 has Buildah 1.28. The wheels contain CUDA and
cuDNN, so the base is Python's own slim image; the driver is the host's. The application's own
requirements are a layer above those gigabytes, which it does not change, and it runs as a user of
its own. Where the loader is in the image, it says while that is built and later whether the set is
whole, and a silent fallback to the CPU is an error.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence

from ...companions.contents import LIBRARIES, PACKAGE
from ...errors import Error
from ...plan.wheels import HERE
from ..model import Lock, header, place_text
from .requirements_txt import pinned
from .words import copy_line, docker_word

BASE = "python:{python}-slim-bookworm"
VENV = "/opt/venv"
USER = "10001"
"""By number: Kubernetes does not start a name where it is to be nobody's root."""
INSTALL = (
    "build with: docker build -t gpu-base -f FILE DIRECTORY; then FROM gpu-base, or add to it",
    "run with: docker run --gpus all …; unchecked: -e GPU_CHECK=off -e ORTGPU_FIX_REQUIRE=",
    "--prefer small is the default of this format; --prefer newest takes the newest wheels",
)
_CHECK = '''\
"""Before the application: does onnxruntime really compute on the GPU?"""
import base64, os, subprocess, sys

MODEL = "{model}"


def check():
    import numpy, onnxruntime

    model, wanted = base64.b64decode(MODEL), "CUDAExecutionProvider"
    session = onnxruntime.InferenceSession(model, providers=[wanted])
    image = numpy.arange(9, dtype=numpy.float32).reshape(1, 1, 3, 3)
    [result] = session.run(None, {{"input": image}})
    if session.get_providers()[0] != wanted:
        sys.exit("gpu-check: onnxruntime fell back to the CPU; the reason is above")
    if result.ravel().tolist() != [20.0, 44.0]:
        sys.exit("gpu-check: the GPU computes wrong numbers")


if sys.argv[1:] == ["--check"]:
    check()
else:  # in a child: some releases crash where the driver is too old
    child = [sys.executable, __file__, "--check"]
    if os.environ.get("GPU_CHECK") != "off" and subprocess.run(child).returncode:
        sys.exit("gpu-check: there is no working GPU here, so the application is not started")
    os.execvp(sys.argv[1], sys.argv[1:])
'''


def dockerfile(lock: Lock, model: bytes, requirements: Sequence[str] = ()) -> str:
    """Return the text of the Dockerfile; `model` is the ONNX model of the check at the start.

    `requirements` are the application's own requirements files, from the directory of the
    Dockerfile; what they include stands behind them.

    Raises Error `lock-docker-places` where the lock is not for one Python on Linux,
    `lock-docker-context` where the companions are outside the folder that Docker can read,
    `lock-value-odd` for a value that would be more than a word of it, and those of `pinned`.
    """
    pythons = {place.python_version for place in lock.places}
    free_threaded = any(target.facts.python.free_threaded for target in lock.targets)
    systems = {place.sys_platform for place in lock.places}
    if len(pythons) > 1 or systems != {"linux"} or free_threaded:
        places = "; ".join(place_text(place) for place in lock.places)
        raise Error("lock-docker-places", places=places)
    [python] = pythons
    base = BASE.format(python=docker_word(python))
    parts = [
        header(lock, INSTALL if lock.cuda else INSTALL[:1], loaded=True),
        _build(lock, base),
        f"FROM {base}\nCOPY --from=build {VENV} {VENV}",
        *_application(requirements),
        _environment(lock, python),
    ]
    if lock.cuda:
        check = _CHECK.format(model=base64.b64encode(model).decode())
        parts += [_written(check.splitlines(), "/opt/gpu-check.py")]
    if LIBRARIES in lock.companions:
        parts += [f"RUN python -m {PACKAGE} --load"]
        parts += [f'HEALTHCHECK --interval=1m CMD ["python", "-m", "{PACKAGE}"]']
    parts += [f"RUN useradd --create-home --uid {USER} app", f"USER {USER}", "WORKDIR /home/app"]
    if lock.cuda:
        parts += ['ENTRYPOINT ["python", "/opt/gpu-check.py"]']
    return "\n".join([*parts, 'CMD ["python"]\n'])


def _build(lock: Lock, base: str) -> str:
    """Return the stage that installs the environment; the image gets nothing else of it."""
    lines = [
        f"FROM {base} AS build",
        "WORKDIR /lock",
        _written(pinned(lock).replace(" \\\n    ", " ").splitlines(), "requirements.txt"),
        *map(copy_line, _copied(lock)),
    ]
    pip = f"python -m pip --python {VENV} install --no-cache-dir --no-compile"
    lines += [
        f"RUN python -m venv --without-pip {VENV} \\",
        f" && {pip} --require-hashes -r requirements.txt",
        "",
    ]
    return "\n".join(lines)


def _application(files: Sequence[str]) -> list[str]:
    """Return the instructions that install the application's own requirements into the image."""
    pip = f"/usr/local/bin/python -m pip --python {VENV} install --no-cache-dir"
    for path in files:
        if not path.startswith("./"):
            raise Error("lock-docker-context", path=path)
    if not files:
        return [
            "# The application's own requirements (`-r FILE` writes these lines):",
            "# COPY requirements.txt /app/",
            f"# RUN {pip} -r /app/requirements.txt",
        ]
    copies = [copy_line(path) for path in files]
    first = shlex.quote(files[0].removeprefix("./"))
    return ["WORKDIR /app", *copies, f"RUN {pip} -r {first}"]


def _written(lines: Sequence[str], file: str) -> str:
    """Return the instruction that writes `lines` into a file; each is one word of the shell."""
    words = [f"{shlex.quote(line)} \\" for line in lines]
    return "\n ".join(["RUN printf '%s\\n' \\", *words, f"> {file}"])


def _copied(lock: Lock) -> list[str]:
    """Return the paths of the companions to copy into the build."""
    chosen = [entry for target in lock.targets for entry in target.chosen]
    urls = {entry.url for entry in chosen if entry.wheel.index_url == HERE}
    paths = sorted(url for url in urls if "://" not in url)
    for path in paths:
        if not path.startswith("./"):
            raise Error("lock-docker-context", path=path)
    return paths


def _environment(lock: Lock, python: str) -> str:
    """Return the variables: of the environment, and of NVIDIA's container toolkit."""
    lines = [f"PATH={VENV}/bin:$PATH"]
    if lock.cuda:
        # The host needs no more than a driver of the CUDA major. Source:
        # https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        lines += ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
        lines += [f'NVIDIA_REQUIRE_CUDA="cuda>={docker_word(lock.cuda)}.0"']
    if lock.cuda and LIBRARIES not in lock.companions:
        site = f"{VENV}/lib/python{python}/site-packages"
        named = dict.fromkeys(path for target in lock.targets for path in target.libraries)
        folders = [f"{site}/{docker_word(path)}" for path in named]
        lines += [f"LD_LIBRARY_PATH={':'.join(folders)}"]
    elif lock.cuda:
        lines += ["ORTGPU_FIX_REQUIRE=cuda"]
    return "ENV " + " \\\n    ".join(lines)
