"""A lock as a Dockerfile: the set in a small image, and a look at the GPU before the application.

One file holds all: the requirements are a here-document (BuildKit, which Docker 23 and newer
use; Buildah 1.33). The wheels bring CUDA and cuDNN, so the base is Python's own slim image; the
driver comes into the container from the host.
"""

from __future__ import annotations

import base64
from pathlib import PurePosixPath

from ...companions.contents import LIBRARIES
from ...errors import Error
from ...plan.wheels import HERE
from ..model import Lock, header, place_text
from .requirements_txt import pinned

BASE = "python:{python}-slim-bookworm"
VENV = "/opt/venv"
INSTALL = (
    "build with: docker build -t gpu-base -f FILE FOLDER; then FROM gpu-base, or add to it here",
    "run with: docker run --gpus all … (GPU_CHECK=off in its environment leaves the check out)",
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


def dockerfile(lock: Lock, model: bytes) -> str:
    """Return the text of the Dockerfile; `model` is what the check at the start runs.

    Raises Error `lock-docker-places` where the lock is not for one Python on Linux, and
    `lock-docker-context` where the companions lie outside the folder that Docker sees, and
    those of `pins`.
    """
    pythons = {place.python_version for place in lock.places}
    free = any(target.facts.python.free_threaded for target in lock.targets)
    systems = {place.sys_platform for place in lock.places}
    if len(pythons) > 1 or systems != {"linux"} or free:
        raise Error(
            "lock-docker-places", places="; ".join(place_text(place) for place in lock.places)
        )
    [python] = pythons
    base = BASE.format(python=python)
    install = INSTALL if lock.cuda else INSTALL[:1]
    parts = [
        header(lock, install, loaded=True),
        _build(lock, base),
        f"FROM {base}\nCOPY --from=build {VENV} {VENV}",
    ]
    parts += [_environment(lock, python)]
    if lock.cuda:
        check = _CHECK.format(model=base64.b64encode(model).decode())
        parts += [f"COPY <<'CHECK' /opt/gpu-check.py\n{check}CHECK"]
        parts += ['ENTRYPOINT ["python", "/opt/gpu-check.py"]']
    return "\n".join([*parts, 'CMD ["python"]\n'])


def _build(lock: Lock, base: str) -> str:
    """Return the stage that fills the environment; nothing of it but that gets into the image."""
    lines = [f"FROM {base} AS build", "WORKDIR /lock", "COPY <<'LOCK' requirements.txt"]
    lines += [f"{pinned(lock)}LOCK"]
    lines += [f"COPY {path} {PurePosixPath(path).parent}/" for path in _copied(lock)]
    pip = f"python -m pip --python {VENV} install --no-cache-dir --no-compile"
    lines += [
        f"RUN python -m venv --without-pip {VENV} \\",
        f" && {pip} --require-hashes -r requirements.txt",
        "# The application's own requirements, before the next stage:",
        "# COPY requirements-app.txt .",
        f"# RUN {pip} -r requirements-app.txt",
        "",
    ]
    return "\n".join(lines)


def _copied(lock: Lock) -> list[str]:
    """Return the paths of the companions that Docker has to copy."""
    addresses = {
        one.url for target in lock.targets for one in target.chosen if one.wheel.index_url == HERE
    }
    paths = sorted(address for address in addresses if "://" not in address)
    for path in paths:
        if not path.startswith("./"):
            raise Error("lock-docker-context", path=path)
    return paths


def _environment(lock: Lock, python: str) -> str:
    """Return the variables: of the environment, and of NVIDIA's container toolkit."""
    lines = [f"PATH={VENV}/bin:$PATH"]
    if lock.cuda:
        # Any driver of the CUDA major will do, so that is what the host is asked for. Source:
        # https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        lines += ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
        lines += [f'NVIDIA_REQUIRE_CUDA="cuda>={lock.cuda}.0"']
    if lock.cuda and LIBRARIES not in lock.companions:
        site = f"{VENV}/lib/python{python}/site-packages"
        folders = dict.fromkeys(one for target in lock.targets for one in target.libraries)
        lines += ["LD_LIBRARY_PATH=" + ":".join(f"{site}/{folder}" for folder in folders)]
    return "ENV " + " \\\n    ".join(lines)
