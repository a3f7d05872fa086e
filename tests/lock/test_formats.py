"""What a lock holds, and each format to the letter."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock

import synthetic
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import Driver, Facts, Gpu
from ortgpu_fix.lock.formats.dockerfile import dockerfile
from ortgpu_fix.lock.formats.pylock import pylock
from ortgpu_fix.lock.formats.requirements_txt import requirements
from ortgpu_fix.lock.formats.uv import uv_lines
from ortgpu_fix.lock.machine_lines import read_machines
from ortgpu_fix.lock.model import Lock, LockTarget, header, locked_distributions
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.shells import PastedCommand
from ortgpu_fix.plan.wheels import HERE, PYPI, Pinned, Wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LINUX = synthetic.machine(libc="glibc 2.35")
WINDOWS = synthetic.machine("windows", None)
NEWER = synthetic.machine(version="3.12.1")
CU128 = "https://download.example/whl/cu128"


def pinned(
    name: str, version: str, tag: str = "py3-none-any", *, index: str = PYPI, url: str = ""
) -> Pinned:
    """Return a wheel whose hash is made of its tag's first letter."""
    file = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    digest = f"{ord(tag[0]) % 10}{ord(tag[-1]) % 10}" * 32
    wheel = Wheel(name=name, version=version, index_url=index, file=file, size=5, sha256=digest)
    return Pinned(wheel=wheel, url=url)


def at(pin: Pinned) -> Pinned:
    """Return `pin` with an address on an index."""
    return pin._replace(url=f"https://files.example/{pin.wheel.file}")


def target(
    facts: Facts, *chosen: Pinned, closure: tuple[Pinned, ...] = (), name: str = ""
) -> LockTarget:
    return LockTarget(
        machines=((name, facts),),
        facts=facts,
        chosen=chosen,
        closure=closure,
        ranges=("flatbuffers", "numpy>=1.21.6"),
        libraries=("nvidia/cublas/lib", "nvidia/cudnn/lib"),
    )


def lock(*targets: LockTarget, **more: object) -> Lock:
    made = Lock(
        distribution="onnxruntime-gpu",
        version="1.26.0",
        cuda="12",
        python="3.11",
        preload_dlls=True,
        targets=targets,
        commands=(PastedCommand(None, "ortgpu-fix lock --facts a.json"),),
        matrix_date="2026-01-01",
        matrix_digest="sha256:invented",
    )
    return replace(made, **more)  # type: ignore[arg-type]


ORT = pinned("onnxruntime-gpu", "1.26.0", "cp311-cp311-linux_x86_64")
ORT_WINDOWS = pinned("onnxruntime-gpu", "1.26.0", "xp311-cp311-win_amd64")
CUBLAS = pinned("nvidia-cublas-cu12", "12.8.4")
OLDER_CUBLAS = pinned("nvidia-cublas-cu12", "12.6.1")
NUMPY = pinned("numpy", "2.4.6")
LIBRARIES = pinned(
    "ortgpu-fix-libraries",
    "1.26.0+setabc",
    index=HERE,
    url="./wheels/ortgpu_fix_libraries-1.26.0+setabc-py3-none-any.whl",
)
STAND_IN = pinned(
    "onnxruntime", "1.26.0", index=HERE, url="https://share.example/w/onnxruntime-1.26.0.whl"
)
TORCH = pinned(
    "torch",
    "2.10.0+cu128",
    index=CU128,
    url=f"{CU128}/torch-2.10.0%2Bcu128-cp311-cp311-linux_x86_64.whl",
)
HEAD = """\
# onnxruntime-gpu 1.26.0 for CUDA 12, with all that it needs
# made by: ortgpu-fix lock --facts a.json
# for linux x86_64, glibc 2.35, Python 3.11.7; driver CUDA 12.2; GPU 8.0
# matrix: 2026-01-01 sha256:invented
"""
PRELOAD = "# the application: onnxruntime.preload_dlls() before its first session\n"


def test_a_requirements_file_to_the_letter() -> None:
    made = lock(target(LINUX, ORT, CUBLAS, closure=(NUMPY, pinned("numpy", "2.4.6", "cp311-x"))))

    text = requirements(made)

    assert text == (
        HEAD
        + "# install with: pip install --require-hashes -r FILE (or uv pip install),"
        + " in FILE's directory\n"
        + "# before: pip uninstall onnxruntime"
        + " (the CPU-only package uses the directory of the GPU one)\n"
        + PRELOAD
        + f"""
numpy==2.4.6 \\
    --hash=sha256:{"21" * 32} \\
    --hash=sha256:{"90" * 32}
nvidia-cublas-cu12==12.8.4 \\
    --hash=sha256:{"21" * 32}
onnxruntime-gpu==1.26.0 \\
    --hash=sha256:{"92" * 32}
"""
    )


def test_what_is_made_here_or_on_a_named_index_is_named_by_its_address() -> None:
    made = lock(target(LINUX, ORT, LIBRARIES, STAND_IN, TORCH))

    lines = [line for line in requirements(made).splitlines() if line and line[0] not in "# "]

    assert lines == [
        "onnxruntime @ https://share.example/w/onnxruntime-1.26.0.whl \\",
        "onnxruntime-gpu==1.26.0 \\",
        "./wheels/ortgpu_fix_libraries-1.26.0+setabc-py3-none-any.whl \\",
        f"torch @ {CU128}/torch-2.10.0%2Bcu128-cp311-cp311-linux_x86_64.whl \\",
    ]


def test_markers_stand_only_where_targets_differ() -> None:
    made = lock(
        target(LINUX, ORT, CUBLAS, closure=(NUMPY,)),
        target(WINDOWS, ORT_WINDOWS, OLDER_CUBLAS, LIBRARIES, closure=(NUMPY,)),
    )

    lines = [line for line in requirements(made).splitlines() if "==" in line or "./" in line]

    assert lines == [
        "numpy==2.4.6 \\",
        "nvidia-cublas-cu12==12.6.1 ; sys_platform == 'win32' \\",
        "nvidia-cublas-cu12==12.8.4 ; sys_platform == 'linux' \\",
        "onnxruntime-gpu==1.26.0 \\",
        (
            "./wheels/ortgpu_fix_libraries-1.26.0+setabc-py3-none-any.whl"
            " ; sys_platform == 'win32' \\"
        ),
    ]


def test_one_place_cannot_have_two_versions() -> None:
    other = LINUX._replace(platform=LINUX.platform._replace(libc="glibc 2.39"))
    made = lock(target(LINUX, CUBLAS), target(other, OLDER_CUBLAS))

    with pytest.raises(Error) as caught:
        locked_distributions(made)

    assert caught.value.code == "lock-apart"
    assert caught.value.values == {
        "name": "nvidia-cublas-cu12",
        "versions": "12.6.1 and 12.8.4",
        "place": "linux x86_64, Python 3.11",
    }


def test_the_order_of_machines_changes_no_file() -> None:
    linux, windows = target(LINUX, ORT), target(WINDOWS, ORT_WINDOWS)

    assert locked_distributions(lock(windows, linux)) == locked_distributions(lock(linux, windows))


@given(
    st.sampled_from([LINUX, WINDOWS]),
    st.sampled_from([Driver("535.104.12", "12.2"), Driver("551.61"), Driver(None, "11.8")]),
    st.lists(st.sampled_from(["5.2", "8.9", "12.0"]), min_size=1, unique=True),
    st.text(),
)
def test_a_machine_with_a_gpu_is_read_back_from_the_header(
    machine: Facts, driver: Driver, capabilities: list[str], name: str
) -> None:
    gpus = tuple(Gpu(compute_capability=one) for one in sorted(capabilities))
    facts = machine._replace(driver=driver, gpus=gpus)

    [read] = read_machines(header(lock(target(facts, name=name)), ()))

    assert (read.driver, read.gpus) == (driver, gpus)
    assert read.platform == facts.platform._replace(distribution=None)
    assert read.python.version == facts.python.version


def test_a_machine_of_which_a_part_is_not_known_is_none_to_hold_a_lock_against() -> None:
    unknown = LINUX._replace(gpus=None), LINUX._replace(driver=Driver()), LINUX._replace(gpus=())
    made = header(lock(*(target(one) for one in (*unknown, LINUX._replace(driver=None)))), ())

    assert made.count("# for linux") == 4
    assert list(read_machines(made)) == []


def test_the_header_says_whose_hash_an_index_gave_and_when() -> None:
    """Of the rows that were read from an index; one for PyPI's wheels says nothing of a feed's."""
    feed = "https://feed.example/simple"
    theirs = pinned("onnxruntime-gpu", "1.26.0", index=feed)
    of_feed = AddedRows("2026-11-22", feed, ("onnxruntime-gpu 1.26.0",), alone=True)
    of_pypi = AddedRows("2026-11-20", "https://mirror.example", ("nvidia-cublas-cu12 12.8.4",))
    added = (of_feed, of_pypi)

    said = header(lock(target(LINUX, theirs, CUBLAS), matrix_added=added), ()).splitlines()

    assert [line for line in said if "hash" in line] == [
        f"# hash as {feed} gave it on 2026-11-22: onnxruntime-gpu 1.26.0",
        "# hash as https://mirror.example gave it on 2026-11-20: nvidia-cublas-cu12 12.8.4",
    ]
    assert "hash" not in header(lock(target(LINUX, ORT, NUMPY), matrix_added=added), ())


def last_line(made: Lock, **options: bool) -> str:
    return header(made, (), **options).splitlines()[-1].removeprefix("# ")


def test_the_header_says_who_loads_the_libraries() -> None:
    plain = lock(target(LINUX, ORT))

    assert "preload_dlls()" in last_line(plain)
    assert "`lock -d DIR`" in last_line(replace(plain, preload_dlls=False))
    assert "`lock -d DIR`" in last_line(replace(plain, version="1.27.0"))
    assert "matrix" in last_line(plain, loaded=True)
    assert "from their address" in last_line(lock(target(LINUX, LIBRARIES, STAND_IN)))
    assert "preload_dlls()" in last_line(lock(target(LINUX, STAND_IN)))


def cpu() -> Lock:
    wheel = pinned("onnxruntime", "1.26.0", "cp311-cp311-linux_x86_64")
    one = replace(target(LINUX, closure=(wheel, NUMPY)), ranges=("onnxruntime==1.26.0",))
    return lock(one, distribution="onnxruntime", cuda=None)


def test_a_pylock_is_one_by_the_standard() -> None:
    made = lock(
        target(LINUX, at(ORT), at(CUBLAS), LIBRARIES, TORCH, closure=(at(NUMPY),)),
        target(WINDOWS, at(ORT_WINDOWS), at(CUBLAS), closure=(at(NUMPY),)),
    )

    text = pylock(made)
    read = Pylock.from_dict(tomllib.loads(text))
    read.validate()
    here = {"sys_platform": "win32", "platform_machine": "AMD64", "python_version": "3.11"}
    rows = {str(package.name): package for package in read.packages}

    assert text.startswith(HEAD.splitlines()[0])
    assert [str(one) for one in read.environments or ()] == [
        'sys_platform == "linux" and platform_machine == "x86_64" and python_version == "3.11"',
        'sys_platform == "win32" and platform_machine == "AMD64" and python_version == "3.11"',
    ]
    assert {name for name, row in rows.items() if row.marker} == {"ortgpu-fix-libraries", "torch"}
    assert not rows["torch"].marker.evaluate(here)  # type: ignore[union-attr]
    assert rows["torch"].index == CU128
    assert [wheel.url for wheel in rows["onnxruntime-gpu"].wheels or ()] == [
        at(ORT).url,
        at(ORT_WINDOWS).url,
    ]
    [companion_wheels] = rows["ortgpu-fix-libraries"].wheels or ()
    assert companion_wheels.path == LIBRARIES.url
    assert companion_wheels.size == 5
    assert companion_wheels.hashes == {"sha256": LIBRARIES.wheel.sha256}


def test_an_index_for_uv_has_a_name_that_uv_allows() -> None:
    root = TORCH._replace(wheel=TORCH.wheel._replace(index_url="https://m.example:8443"))

    assert 'name = "torch-m.example-8443"' in uv_lines(lock(target(LINUX, ORT, root)))


def test_the_lines_for_uv_to_the_letter() -> None:
    text = uv_lines(
        lock(
            target(LINUX, ORT, LIBRARIES, TORCH, closure=(NUMPY,)),
            target(WINDOWS, ORT_WINDOWS, LIBRARIES, closure=(NUMPY,)),
        )
    )

    assert text.partition("\n\n")[2] == (
        f"""\
[dependency-groups]
gpu = [
    "onnxruntime-gpu==1.26.0 ; (sys_platform == 'linux' or sys_platform == 'win32') \
and python_version >= '3.11'",
    "ortgpu-fix-libraries==1.26.0+setabc ; (sys_platform == 'linux' or sys_platform == 'win32') \
and python_version >= '3.11'",
    "torch==2.10.0+cu128 ; sys_platform == 'linux' and python_version >= '3.11'",
]

[tool.uv]
default-groups = ["gpu"]
required-environments = [
    "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "sys_platform == 'win32' and platform_machine == 'AMD64'",
]
override-dependencies = [
    "onnxruntime ; sys_platform != 'linux' and sys_platform != 'win32' or python_version < '3.11'",
]
constraint-dependencies = [
    "numpy>=1.21.6 ; python_version >= '3.11'",
]

[tool.uv.sources]
ortgpu-fix-libraries = {{ path = "{LIBRARIES.url}", marker = "(sys_platform == 'linux' or \
sys_platform == 'win32') and python_version >= '3.11'" }}
torch = {{ index = "torch-cu128", marker = "sys_platform == 'linux' and python_version >= '3.11'" }}

[[tool.uv.index]]
name = "torch-cu128"
url = "{CU128}"
explicit = true
"""
    )


def test_companions_that_differ_have_a_source_each_in_uv() -> None:
    other = LIBRARIES._replace(
        url="./w/b.whl", wheel=LIBRARIES.wheel._replace(version="1.26.0+setdef")
    )
    document = tomllib.loads(uv_lines(lock(target(LINUX, LIBRARIES), target(WINDOWS, other))))

    assert document["tool"]["uv"]["sources"]["ortgpu-fix-libraries"] == [
        {
            "path": LIBRARIES.url,
            "marker": "sys_platform == 'linux' and python_version >= '3.11'",
        },
        {
            "path": "./w/b.whl",
            "marker": "sys_platform == 'win32' and python_version >= '3.11'",
        },
    ]


def test_without_limits_and_without_a_gpu_uv_needs_little() -> None:
    bare = uv_lines(lock(replace(target(LINUX, ORT), ranges=("flatbuffers",))))
    document = tomllib.loads(uv_lines(cpu()))

    assert "constraint-dependencies" not in bare
    assert document["dependency-groups"] == {
        "gpu": ["onnxruntime==1.26.0 ; python_version >= '3.11'"]
    }
    assert set(document["tool"]["uv"]) == {"default-groups"}


def test_a_dockerfile_to_the_letter() -> None:
    local = STAND_IN._replace(url="./wheels/onnxruntime-1.26.0-py3-none-any.whl")
    text = dockerfile(lock(target(LINUX, ORT, local)), b"model")

    site = "/opt/venv/lib/python3.11/site-packages"
    start, _, rest = text.partition("\n\n")
    build, _, final = rest.partition("\n\n")
    assert start.startswith(HEAD.strip())
    assert "preload" not in start
    assert build == (
        f"""\
FROM python:3.11-slim-bookworm AS build
WORKDIR /lock
RUN printf '%s\\n' \\
 './wheels/onnxruntime-1.26.0-py3-none-any.whl --hash=sha256:{"21" * 32}' \\
 'onnxruntime-gpu==1.26.0 --hash=sha256:{"92" * 32}' \\
 > requirements.txt
COPY ./wheels/onnxruntime-1.26.0-py3-none-any.whl wheels/
RUN python -m venv --without-pip /opt/venv \\
 && python -m pip --python /opt/venv install --no-cache-dir --no-compile --require-hashes \
-r requirements.txt"""
    )
    assert final.startswith(
        f"""\
FROM python:3.11-slim-bookworm
COPY --from=build /opt/venv /opt/venv
# The application's own requirements (`-r FILE` writes these lines):
# COPY requirements.txt /app/
# RUN /usr/local/bin/python -m pip --python /opt/venv install --no-cache-dir -r \
/app/requirements.txt
ENV PATH=/opt/venv/bin:$PATH \\
    NVIDIA_VISIBLE_DEVICES=all \\
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \\
    NVIDIA_REQUIRE_CUDA="cuda>=12.0" \\
    LD_LIBRARY_PATH={site}/nvidia/cublas/lib:{site}/nvidia/cudnn/lib
RUN printf '%s\\n' \\
"""
    )
    assert " 'import base64, os, subprocess, sys' \\\n '' \\\n" in final
    assert 'MODEL = "bW9kZWw="' in final
    assert final.endswith(
        """\
 > /opt/gpu-check.py
RUN useradd --create-home --uid 10001 app
USER 10001
WORKDIR /home/app
ENTRYPOINT ["python", "/opt/gpu-check.py"]
CMD ["python"]
"""
    )


def test_the_applications_requirements_are_a_layer_above_the_set() -> None:
    made = lock(target(LINUX, ORT, LIBRARIES))
    text = dockerfile(made, b"", ["./requirements.txt", "./more/dev.txt"])
    final = text.partition("COPY --from=build")[2]
    lines = [line for line in final.splitlines() if line.startswith(("WORKDIR", "COPY", "RUN /"))]
    assert lines[:4] == [
        "WORKDIR /app",
        "COPY ./requirements.txt ./",
        "COPY ./more/dev.txt more/",
        (
            "RUN /usr/local/bin/python -m pip --python /opt/venv install --no-cache-dir "
            "-r requirements.txt"
        ),
    ]
    with pytest.raises(Error, match="lock-docker-context"):
        dockerfile(made, b"", ["../requirements.txt"])


def test_an_image_with_the_loader_is_checked_by_a_module_of_it() -> None:
    text = dockerfile(lock(target(LINUX, ORT, LIBRARIES)), b"")
    check = '["python", "-m", "_ortgpu_fix_libraries"]'
    assert "\nRUN python -m _ortgpu_fix_libraries --load\nHEALTHCHECK" in text
    assert f"\nHEALTHCHECK --interval=1m CMD {check}\n" in text
    assert "HEALTHCHECK" not in dockerfile(lock(target(LINUX, ORT)), b"")


def test_an_image_without_a_gpu_has_nothing_of_nvidia() -> None:
    text = dockerfile(cpu(), b"")

    assert "NVIDIA" not in text
    assert "gpu-check" not in text
    assert "--gpus" not in text


@pytest.mark.parametrize("targets", [[target(LINUX), target(NEWER)], [target(WINDOWS)]])
def test_an_image_is_for_one_python_on_linux(targets: list[LockTarget]) -> None:
    with pytest.raises(Error, match="lock-docker-places"):
        dockerfile(lock(*targets), b"")


def test_docker_sees_only_its_own_folder() -> None:
    with pytest.raises(Error, match="lock-docker-context"):
        dockerfile(lock(target(LINUX, LIBRARIES._replace(url="../share/a.whl"))), b"")


def test_the_command_of_the_header_is_told_as_each_shell_takes_it() -> None:
    """Both were one line, which is a command in neither."""
    told = (PastedCommand("cmd", 'x "a"^%""'), PastedCommand("PowerShell", "x 'a%'"))
    made = replace(lock(target(LINUX, ORT, CUBLAS)), commands=told)

    assert header(made, ()).splitlines()[1:3] == [
        '# made by (in cmd): x "a"^%""',
        "# made by (in PowerShell): x 'a%'",
    ]


def test_what_one_system_alone_needs_is_asked_for_by_no_other() -> None:
    """uv refused the lines: msvc-runtime differs by Python here, and has no wheel for Linux."""
    older = WINDOWS._replace(python=NEWER.python)
    made = lock(
        target(LINUX, ORT),
        target(WINDOWS, ORT_WINDOWS, pinned("msvc-runtime", "14.44")),
        target(older, ORT_WINDOWS, pinned("msvc-runtime", "14.51")),
    )
    rows = [line.strip() for line in uv_lines(made).splitlines() if "msvc-runtime" in line]

    assert rows == [
        "\"msvc-runtime==14.44 ; sys_platform == 'win32' and python_version == '3.11'\",",
        "\"msvc-runtime==14.51 ; sys_platform == 'win32' and python_version == '3.12'\",",
    ]
    alone = lock(*made.targets[1:])
    assert "14.44 ; sys_platform == 'win32' and python_version == '3.11'" in uv_lines(alone)
