"""What the text of a Dockerfile or a compose file tells, with its lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command import run_here
from documents import SCHEMAS

from ortgpu_fix.image.dockerfile import based_on, read_dockerfile, taken_from
from ortgpu_fix.image.installs import installs_of

PIP = "RUN pip install --no-cache-dir"
PLAIN = "FROM python:3.12-slim\n"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
RUNTIME = "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04"


def told(tmp_path: Path, text: str, *flags: str, name: str = "Dockerfile") -> dict[str, Any]:
    """Return the document of a text, which fits its schema."""
    (tmp_path / name).write_text(text, "utf-8")
    done = run_here("check-image", name, "--json", *flags, cwd=tmp_path, env={"LANG": "C.UTF-8"})
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMAS["container_text"])
    assert done.returncode == int(document["verdict"] != "healthy")
    return document


def found(document: dict[str, Any]) -> list[tuple[int, str, str]]:
    return [(row["line"], row["code"], row["severity"]) for row in document["findings"]]


def from_image(document: dict[str, Any]) -> list[tuple[int, str]]:
    return [(row["line"], row["what"]) for row in document["from_image"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{PLAIN}{PIP} onnxruntime-gpu[cuda,cudnn]==1.26.0\n", []),
        (f"{PLAIN}{PIP} onnxruntime-gpu==1.26.0 nvidia-cudnn-cu12\n", []),
        (f"FROM {RUNTIME}\n{PIP} onnxruntime-gpu==1.26.0\n", []),
        (f"FROM {RUNTIME}\n{PIP} onnxruntime-gpu==1.26.* rembg\n", []),
        (f"FROM ghcr.io/me/base:3\n{PIP} onnxruntime-gpu==1.26.0\n", []),
        (f"{PLAIN}{PIP} numpy\n", []),
        (f"{PLAIN}{PIP} onnxruntime\n", [(2, "text-cpu-build", "error")]),
        (f"{PLAIN}{PIP} onnxruntime-gpu==1.26.0\n", [(2, "text-cuda-missing", "error")]),
        (f"{PLAIN}{PIP} onnxruntime-gpu==1.26.0 torch\n", []),
        (f"{PLAIN}{PIP} -r more.txt onnxruntime-gpu==1.26.0\n", []),
        (
            f"{PLAIN}{PIP} onnxruntime-gpu[cuda]==1.26.0\n{PIP} onnxruntime\n",
            [(3, "text-both-builds", "error")],
        ),
        (
            (
                f"{PLAIN}{PIP} onnxruntime\nRUN pip uninstall -y onnxruntime\n"
                f"{PIP} onnxruntime-gpu[cuda]==1.26.0"
            ),
            [],
        ),
        (
            f"FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04\n{PIP} onnxruntime-gpu==1.31.1",
            [(1, "text-cuda-other", "error")],
        ),
        (
            f"FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04\n{PIP} onnxruntime-gpu==1.26.0",
            [(1, "text-cudnn-other", "error")],
        ),
        (
            f"FROM nvcr.io/nvidia/cuda:12.8.1-runtime-ubi9\n{PIP} onnxruntime-gpu==1.26.0 torch",
            [(1, "text-cudnn-missing", "warning")],
        ),
        (
            f"FROM nvidia/cuda:12.8.1-cudnn-base-x\n{PIP} onnxruntime-gpu==1.26.0",
            [(1, "text-cudnn-missing", "error")],
        ),
        (
            f"FROM {RUNTIME}\n{PIP} onnxruntime-gpu[cuda,cudnn]==1.26.0\n",
            [(1, "text-cuda-unused", "warning")],
        ),
        (
            f"{PLAIN}ENV A=1 \\\n  NVIDIA_DRIVER_CAPABILITIES=video\n",
            [(3, "image-without-compute", "error")],
        ),
        (
            (
                f"{PLAIN}ENV NVIDIA_DRIVER_CAPABILITIES video\n"
                "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
            ),
            [],
        ),
        (f"{PLAIN}ENV NVIDIA_DRIVER_CAPABILITIES='all\n", []),
        (f"{PLAIN}ENV NVIDIA_DRIVER_CAPABILITIES=\n", []),
        (f"{PLAIN}ENV {CAPABILITIES}=${{{CAPABILITIES}:+${CAPABILITIES},}}graphics\n", []),
        (f"{PLAIN}ENV {CAPABILITIES}=${CAPABILITIES},video\n", []),
        (f"{PLAIN}RUN cat <<E > /hint\npip install onnxruntime\nE\n{PIP} numpy\n", []),
        (
            f"{PLAIN}RUN /usr/bin/python3 <<E\nimport pip\nE\n{PIP} onnxruntime\n",
            [(5, "text-cpu-build", "error")],
        ),
        (
            (
                f"{PLAIN}RUN /a/bin/pip3 install onnxruntime-gpu[cuda]==1.26.0\n"
                "RUN uv pip install --python /a/bin/python3.12 onnxruntime\n"
            ),
            [(3, "text-both-builds", "error")],
        ),
        (
            (
                f"FROM {RUNTIME}\n{PIP} onnxruntime==1.22.0 onnxruntime-gpu==1.22.0 && \\\n"
                "    pip uninstall -y onnxruntime\n"
            ),
            [(3, "folder-gutted", "error")],
        ),
        (
            (
                f"FROM {RUNTIME}\n{PIP} onnxruntime onnxruntime-gpu==1.22.0\n"
                "RUN pip uninstall -y onnxruntime onnxruntime-gpu\n"
                f"{PIP} onnxruntime-gpu==1.22.0\n"
            ),
            [],
        ),
        (
            (
                f"FROM {RUNTIME}\n{PIP} onnxruntime-gpu==1.22.0\n"
                "RUN pip uninstall -y onnxruntime numpy\n"
            ),
            [],
        ),
        (
            f"FROM {RUNTIME}\n{PIP} numpy onnxruntime-gpu==1.22.0 && pip uninstall -y numpy\n",
            [],
        ),
        (
            (
                f"FROM {RUNTIME}\n{PIP} onnxruntime onnxruntime-gpu==1.22.0\n"
                "RUN if true; then pip uninstall -y onnxruntime; fi\n"
            ),
            [],
        ),
    ],
)
def test_what_a_dockerfile_tells(
    tmp_path: Path, text: str, expected: list[tuple[int, str, str]]
) -> None:
    assert found(told(tmp_path, text)) == expected


def test_a_release_that_is_not_pinned_is_the_newest(tmp_path: Path) -> None:
    document = told(tmp_path, f"{PLAIN}{PIP} 'onnxruntime-gpu[cuda,cudnn]>=1.20,<1.27'\n")

    assert found(document) == [(2, "text-unpinned", "warning")]
    said = document["findings"][0]["summary"]
    assert "may take 1.26.0, for CUDA 12, which needs driver 525.60.13 or newer" in said
    assert document["serves"]["release"] == "1.26.0"
    assert document["serves"]["driver"] == "525.60.13"
    nothing = told(tmp_path, f"{PLAIN}RUN uv sync\n{PIP} onnxruntime-gpu==99 -r a.txt\nRUN pdm add")
    assert (nothing["serves"], nothing["findings"]) == (None, [])
    assert from_image(nothing) == [
        *((2, "uv sync"), (3, "-r a.txt"), (3, "onnxruntime-gpu==99"), (4, "pdm add")),
    ]
    assert told(tmp_path, f"FROM me/base\n{PIP} onnxruntime-gpu==99\n")["serves"] is None


def test_for_the_machines_that_run_it(tmp_path: Path) -> None:
    text = f"{PLAIN}{PIP} onnxruntime-gpu[cuda,cudnn]==1.31.1 nvidia-cudnn-cu13==9.28.0.42\n"
    old = told(tmp_path, text, "--driver", "535.104.12", "--gpu", "8.0")
    new = told(tmp_path, text, "--driver", "580.65.06", "--gpu", "8.0")

    assert [row["code"] for row in old["machines"][0]["reasons"]] == ["driver-too-old"]
    assert (old["verdict"], found(old)) == ("fixable", [])
    assert (new["verdict"], new["machines"]) == ("healthy", [{"name": "", "reasons": []}])
    assert new["serves"]["cudnn"] == "9.28.0.42"


def test_what_only_the_image_tells(tmp_path: Path) -> None:
    text = f"""{PLAIN}COPY requirements.txt .
RUN apt-get update && \\
    python -m pip install -r requirements.txt \\
    -e . --requirement=more.txt -c constraints.txt
RUN uv sync --frozen; poetry install
RUN ["uv", "pip", "install", "./app.whl", "git+https://example.com/x"]
RUN conda install -y onnxruntime && uv pip sync lock.txt
"""
    document = told(tmp_path, text)

    assert from_image(document) == [
        (4, "-r requirements.txt"),
        (5, "-e ."),
        (5, "-r more.txt"),
        (6, "uv sync"),
        (6, "poetry install"),
        (7, "./app.whl"),
        (7, "git+https://example.com/x"),
        (8, "conda install"),
        (8, "lock.txt"),
    ]
    assert document["verdict"] == "healthy"


@pytest.mark.parametrize(
    "command",
    [
        "pip --python /opt/venv install {}",
        "pip --no-cache-dir --timeout 9 $FLAGS install {}",
        "/opt/venv/bin/python -m pip3.11 --no-cache-dir install {}",
        "uv --project /app pip install {}",
        "uv -o a.txt --directory /app pip install {}",
        "pip install --root-user-action ignore {}",
        "--mount=type=cache,target=/root/.cache/pip \\\n  --network=none pip install {}",
        '--mount=type=cache,target=/x ["pip", "install", "{}"]',
        'bash -lc "pip install {}"',
        "su app -c 'echo a && pip install {}'",
        '["/bin/sh", "-e", "-c", "pip install {}"]',
        "pip install {}  # don't change",
        "<<EOF\n# don't; never\npip install {}  # it's\nEOF",
        'echo "it\'s \\" done" it\\\'s; pip install {}',
        "A=1 B='2 3' pip install {}",
        "git clone -c x y; (pip install {})",
        "pip install $(cat a.txt) {}",
        "pip install -i https://pypi.tuna.tsinghua.edu.cn/simple {}",
        "pip install --extra-index-url=https://download.pytorch.org/whl/cu126 {}",
        "pip install --index-url $MIRROR {}",
        "pip install {} > /dev/null",
        "pip install {} 2>&1 | tee /log",
        "pip install {}>>/log 2>/dev/null || true",
        "pip install {} &> '/a log'",
        "pip install </dev/null {} >|x 2>&-",
        "pip install -qU {}",
        "bash -e <<EOF\npip install {}\nEOF",
        "true; /bin/sh <<'EOF'\npip install {}\nEOF",
        "--mount=type=cache,target=/x <<-EOF\npip install {}\nEOF",
        "pip uninstall a; [ -x a ]; pip install {}",
        "[ a ] || true && pip install {}",
        "pip install {}; echo pip install onnxruntime > /hint",
        "printf pip install onnxruntime; pip install {}",
        "chmod +x a.sh; pip install {}",
        "pip install {} || true",
        "if true; then true; fi; pip install {}",
        "case $A in b) true;; esac; pip install {}",
    ],
)
def test_how_pip_is_called(tmp_path: Path, command: str) -> None:
    text = f"{PLAIN}RUN {command.format('onnxruntime-gpu==1.26.0')}\n"
    document = told(tmp_path, text)

    assert document["serves"]["release"] == "1.26.0"
    at = 2 + command.partition("{}")[0].count("\n")
    unsure = ["$(cat a.txt)"] if "$(" in command else []
    assert [row["what"] for row in document["from_image"]] == unsure
    assert found(document) == ([] if unsure else [(at, "text-cuda-missing", "error")])


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("--mount=type=cache,target=/root/.cache/uv uv sync", "uv sync"),
        ("A=false poetry install", "poetry install"),
        ("cd /app && /opt/poetry/bin/poetry --no-ansi -n install", "poetry install"),
        ("sh -c 'pdm sync'", "pdm sync"),
        ("pixi install", "pixi install"),
        ("pipenv sync", "pipenv sync"),
        ("micromamba create -f a.yml", "micromamba create"),
        ("apt-get -o a install -y curl libcudnn9-cuda-12", "apt-get install libcudnn9-cuda-12"),
        ("dnf install -y cuda-cudart-12-6 cudnn9", "dnf install cuda-cudart-12-6 cudnn9"),
        ("apk add libcublas", "apk add libcublas"),
        ("echo a 'b\nc", "'b"),
        ('["sh", "-c", "a\\\\"]', "\\"),
        ("if [ $A ]; then pip install a; else pip install b; fi", "if [ $A ]"),
        ("case $A in b) pip install c;; esac", "case $A in b"),
        ("pip install a || pip install b", "|| pip install b"),
        ("pip install -i https://me.example/ a", "--index-url https://me.example/"),
        (
            "pip install --index=https://x/ort-cuda-13/pypi a",
            "--index-url https://x/ort-cuda-13/pypi",
        ),
        ("apt-get install nvidia-cudnn curl", "apt-get install nvidia-cudnn"),
        ("apt-get install cuda", "apt-get install cuda"),
        ("apt-get install -y /tmp/a.deb", "apt-get install /tmp/a.deb"),
        ("tdnf install -y cuda-cudart", "tdnf install cuda-cudart"),
        ("zypper -n in cuda", "zypper in cuda"),
        ("dpkg -i a.deb", "dpkg -i a.deb"),
        ("sudo dpkg --install a.deb", "sudo dpkg --install a.deb"),
        ("rpm -Uvh a.rpm", "rpm -Uvh a.rpm"),
        ("sh cuda_12.6.run --silent > /log", "sh cuda_12.6.run --silent"),
        ("A=1 /tmp/cuda.run", "A=1 /tmp/cuda.run"),
        ("/bin/bash -e setup", "/bin/bash -e setup"),
        ("sh \\\n  a.sh", "sh a.sh"),
        ("test $A; if b; then pip install c; fi", "if b"),
        ("tar -xf /tmp/cudnn-linux-9.tar.xz -C /", "tar -xf /tmp/cudnn-linux-9.tar.xz -C /"),
        ("pip-sync a.txt", "pip-sync a.txt"),
        ("rye sync", "rye sync"),
        ("rye add a", "rye add"),
        ("pip install -Ur a.txt", "-r a.txt"),
        ("pip install -ra.txt", "-r a.txt"),
        ("pip install --group a", "--group a"),
        ("pip install --group=a", "--group a"),
        ("uv pip install --requirements-from-script a.py", "-r a.py"),
        ('[ -n "$A" ] && pip install a', "&& pip install a"),
        ("test $A && b && pip install a", "&& pip install a"),
        ("[[ $A ]] && pip install a", "&& pip install a"),
        ("b && pip install a", None),
        ("test $A; pip install a", None),
        ("test $A && b; pip install a", None),
        ("&& pip install a", None),
        ("dpkg -l", None),
        ("rpm --import a", None),
        ("bash --version", None),
        ("apk add bash curl", None),
        ("apt-get install -y curl", None),
        ("bash -c", None),
        ("conda run libcudnn", None),
        ("if true; then echo; fi", None),
    ],
)
def test_what_makes_the_rest_unsure(tmp_path: Path, command: str, what: str | None) -> None:
    text = f"FROM nvidia/cuda:12.8.1-runtime-x\nRUN {command}\n{PIP} onnxruntime-gpu==1.26.0\n"
    document = told(tmp_path, text)

    assert from_image(document) == ([(2, what)] if what else [])
    assert found(document) == [(1, "text-cudnn-missing", "warning" if what else "error")]


FEED = "https://aiinfra.pkgs.visualstudio.com/PublicProjects/_packaging/onnxruntime-cuda-11/pypi/"


def test_a_build_of_another_index_is_not_known(tmp_path: Path) -> None:
    text = (
        "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04\n"
        f"{PIP} onnxruntime-gpu==1.19.2 --index-url {FEED}\n"
    )
    document = told(tmp_path, text, "--driver", "470.57.02", "--gpu", "8.0")

    assert (document["findings"], document["machines"], document["serves"]) == ([], [], None)
    assert from_image(document) == [(2, f"--index-url {FEED}"), (2, "onnxruntime-gpu==1.19.2")]


@pytest.mark.parametrize(
    "command",
    [
        "if [ $A ]; then pip install onnxruntime-gpu==1.26.0; else pip install onnxruntime; fi",
        "pip install onnxruntime-gpu==1.26.0 || pip install onnxruntime",
        "if [ $A ]; then pip install onnxruntime; else pip install -r gpu.txt; fi",
        "if [ $A ]; then pip install onnxruntime-gpu==1.26.0; fi; pip install onnxruntime",
        '[ -n "$CPU" ] && pip install onnxruntime || true',
        "/a/bin/pip install onnxruntime-gpu==1.26.0; /b/bin/python -m pip install onnxruntime",
        "/a/bin/pip install onnxruntime-gpu==1.26.0; pip install onnxruntime",
        (
            "/a/bin/pip install onnxruntime; /b/bin/pip install onnxruntime-gpu==1.26.0;"
            "/a/bin/pip uninstall -y onnxruntime"
        ),
    ],
)
def test_a_build_that_the_shell_chooses_is_not_wrong(tmp_path: Path, command: str) -> None:
    assert found(told(tmp_path, f"FROM {RUNTIME}\nRUN {command}\n")) == []


def test_files_that_went_with_the_other_build_serve_nobody(tmp_path: Path) -> None:
    text = f"FROM {RUNTIME}\n{PIP} onnxruntime onnxruntime-gpu==1.22.0\n"
    text += "RUN pip uninstall -y onnxruntime\n"
    document = told(tmp_path, text, "--driver", "580.65.06", "--gpu", "8.0")

    assert (document["serves"], document["machines"], document["from_image"]) == (None, [], [])
    same = found(told(tmp_path, f"{text}{PIP} -q onnxruntime-gpu==1.22.0\n"))
    assert same == [(3, "folder-gutted", "error")]
    for pip in ("pip install --force-reinstall", "pip install -I", "uv pip install --reinstall"):
        assert found(told(tmp_path, f"{text}RUN {pip} onnxruntime-gpu==1.22.0\n")) == []
    assert found(told(tmp_path, f"{text}RUN /a/bin/pip install onnxruntime-gpu==1.22.0\n")) == []
    assert found(told(tmp_path, f"{text}{PIP} onnxruntime-gpu==1.26.0\n")) == []


UBUNTU = "FROM nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04\nRUN apt-get install -y python3-pip\n"


@pytest.mark.parametrize(
    ("base", "release"),
    [
        ("FROM python:3.10-slim\n", "1.23.2"),
        ("FROM python:3.8\n", "1.19.2"),
        ("FROM ghcr.io/astral-sh/uv:python3.10-bookworm-slim\n", "1.23.2"),
        ("FROM python:3.10 AS a\nFROM a\n", "1.23.2"),
        (UBUNTU, "1.23.2"),
        ("FROM ubuntu:focal\nRUN apt-get install -y python3\n", "1.19.2"),
        ("FROM ubuntu:24.04\nRUN apt-get install -y python3\n", "1.31.1"),
        ("FROM debian:11\nRUN apt-get install -y python3\n", "1.19.2"),
        ("FROM debian:bookworm\nRUN apt-get install -y python3\n", "1.31.1"),
        ("FROM debian:trixie\nRUN apt-get install -y python3\n", "1.31.1"),
        (f"{UBUNTU}RUN apt-get install -y python3.11\n", "1.31.1"),
        (f"{UBUNTU}RUN uv venv -p 3.11\n", "1.31.1"),
        (f"{UBUNTU}RUN uv venv\n", "1.31.1"),
        (f"{UBUNTU}RUN bash Miniconda3.sh\n", "1.31.1"),
        (f"{UBUNTU}RUN apt-get install -y python$VERSION\n", "1.31.1"),
        ("FROM ubuntu:22.04\n", "1.31.1"),
        ("FROM python:3.10\nRUN mamba create -n a\n", "1.31.1"),
        ("FROM python:3.10\nRUN conda create -n a python=3.9\n", "1.19.2"),
        ("FROM ubuntu:22.04\nRUN uv python install 3.10\n", "1.23.2"),
        ("FROM python:3.9\nRUN apt-get install -y python3.10\n", "1.31.1"),
        ("FROM python:3.10\nCOPY a b\nFROM python:3.12\n", "1.31.1"),
        ("FROM python:3.10-bookworm\nRUN python3 -V\n", "1.23.2"),
    ],
)
def test_the_newest_release_for_the_python_of_the_image(
    tmp_path: Path, base: str, release: str
) -> None:
    text = f"{base}{PIP} onnxruntime-gpu[cuda,cudnn]\n"

    assert told(tmp_path, text)["serves"]["release"] == release


def test_the_python_is_that_of_the_stage_that_installs(tmp_path: Path) -> None:
    text = f"FROM python:3.10\n{PIP} onnxruntime-gpu[cuda]\nFROM python:3.9\nCOPY --from=0 /a /b\n"

    assert told(tmp_path, text)["serves"]["release"] == "1.23.2"


@pytest.mark.parametrize(
    ("base", "place"),
    [
        *(("ubuntu:20.04", "cp38"), ("ubuntu:noble", "cp312"), ("debian:bullseye-slim", "cp39")),
        *(("ubuntu:18.04", "cp36m"), ("me/bionic", "cp36m")),
        *(("debian:10-slim", "cp37m"), ("python3-buster", "cp37m")),
        *(("node:20-bookworm", "cp311"), ("debian:13", "cp313"), ("me/ubuntu22.04", "cp310")),
    ],
)
def test_the_python_of_a_system(tmp_path: Path, base: str, place: str) -> None:
    old = "==1.12.0" if place in {"cp36m", "cp311", "cp312", "cp313"} else "==1.31.0"
    text = f"FROM {base}\nRUN apt-get install -y python3\n{PIP} onnxruntime-gpu[cuda]{old}\n"
    [row] = told(tmp_path, text)["findings"]

    assert row["summary"].startswith(f"The image has {place}, ")


@pytest.mark.parametrize(
    ("base", "release", "code", "place"),
    [
        ("python:3.9-slim", "1.26.0", "no-wheel-python", "cp39"),
        ("python:3.12-alpine", "1.26.0", "musl", "musl 1"),
        ("--platform=linux/arm64 python:3.12", "1.26.0", "no-wheel-platform", "linux_aarch64"),
        ("arm64v8/python:3.12", "1.26.0", "no-wheel-platform", "linux_aarch64"),
        ("--platform=linux/arm/v7 python:3.12", "1.31.1", "no-wheel-platform", "linux_armv7l"),
        ("arm32v7/python:3.12", "1.26.0", "no-wheel-platform", "linux_armv7l"),
        ("--platform=linux/arm64 python:3.10", "1.31.1", "no-wheel-python", "cp310"),
    ],
)
def test_no_wheel_for_the_image(
    tmp_path: Path, base: str, release: str, code: str, place: str
) -> None:
    text = f"FROM {base}\n{PIP} onnxruntime-gpu[cuda,cudnn]=={release}\n"
    document = told(tmp_path, text, "--driver", "470.57.02", "--gpu", "8.0")

    assert found(document) == [(2, "text-no-wheel", "error")]
    said = document["findings"][0]["summary"]
    assert said == f"The image has {place}, and no wheel of onnxruntime-gpu {release} is for that"
    assert [row["code"] for row in document["machines"][0]["reasons"]] == [code]
    chosen = f"FROM {base}\nRUN if true; then pip install onnxruntime-gpu[cuda]=={release}; fi\n"
    assert found(told(tmp_path, chosen)) == [(2, "text-no-wheel", "warning")]


def test_a_python_that_is_not_known_is_not_that_of_this_program(tmp_path: Path) -> None:
    text = f"FROM me/base\n{PIP} onnxruntime-gpu==1.12.0\n"
    document = told(tmp_path, text, "--driver", "535.54.03", "--gpu", "8.0")

    assert (document["verdict"], document["machines"]) == (
        "healthy",
        [{"name": "", "reasons": []}],
    )


def test_the_newest_release_for_an_arm_machine(tmp_path: Path) -> None:
    text = f"FROM --platform=linux/arm64 python:3.12\n{PIP} 'onnxruntime-gpu[cuda]<1.29.1'\n"

    assert told(tmp_path, text)["serves"]["release"] == "1.29.0"
    [plain] = read_dockerfile("FROM --platform=linux/arm64 --x python:3.12 AS A\n")
    assert (plain.platform, plain.base, plain.name) == ("linux/arm64", "python:3.12", "a")


STAGES = f"""# syntax=docker/dockerfile:1
ARG CUDA=12.8.1
ARG TAG
FROM nvidia/cuda:${{CUDA}}-cudnn-runtime-${{TAG:-ubuntu22.04}} AS Base
ENV A=1
FROM python:3.11 AS other
{PIP} onnxruntime
FROM --platform=$BUILDPLATFORM python:3.11 AS build
RUN <<EOF
# the GPU
pip install \\
  onnxruntime-gpu==1.26.0
EOF

FROM base
COPY --from=build /opt /opt
COPY --from=7 /a /b
RUN pip install 'unfinished
RUN []
RUN pip
"""


def test_the_stages_of_which_the_image_is_made() -> None:
    stages = read_dockerfile(STAGES)
    installs = installs_of(row for stage in taken_from(stages) for row in stage.instructions)

    assert [(stage.line, stage.base, stage.name) for stage in stages] == [
        (4, "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04", "base"),
        (6, "python:3.11", "other"),
        (8, "python:3.11", "build"),
        (15, "base", ""),
    ]
    assert [stage.line for stage in based_on(stages)] == [4, 15]
    assert [stage.line for stage in taken_from(stages)] == [4, 8, 15]
    assert {name: row.line for name, row in installs.packages.items()} == {"onnxruntime-gpu": 12}
    numbered = read_dockerfile("FROM a\nFROM b\nCOPY --from=0 /a /b\n")
    assert [stage.line for stage in taken_from(numbered)] == [1, 2]


def test_lines_that_go_on() -> None:
    text = "# escape=`\nFROM x`\n AS y\n\n# no\nRUN a `\n\n # no\n b `"
    [stage] = read_dockerfile(text)

    assert (stage.line, stage.base, stage.name) == (2, "x", "y")
    assert [(row.line, row.word, row.text.split()) for row in stage.instructions] == [
        (6, "RUN", ["a", "b"])
    ]
    assert stage.instructions[0].text.count("\n") == 3
    assert read_dockerfile("RUN a\n") == ()
    endless = read_dockerfile("FROM x\nRUN <<E\na \\\nb\n")[0].instructions
    assert endless[0].text.split() == ["<<E", ";", "a", "b", ";"]


@pytest.mark.parametrize(
    ("copy", "what"),
    [
        ("--from=nvidia/cuda:12.6.3-runtime  /usr/local/cuda /usr/local/cuda", True),
        ("--from=gpu /usr/local/cuda-12 /x", True),
        ("--from=GPU /usr/lib/libcudnn.so.9 /x", True),
        ("--from=2 /a /b", True),
        ("--from=gpu /usr/local/cuda/bin/nvcc /usr/bin/nvcc", False),
        ("--from=ghcr.io/astral-sh/uv:0.5 /uv /uvx /bin", False),
        *(("--from=0 /a /b", False), ("--from=gpu /a /b", False), ("--from=GPU /a /b", False)),
        ("cuda /cuda", False),
    ],
)
def test_what_is_copied_from_elsewhere(tmp_path: Path, copy: str, *, what: bool) -> None:
    text = f"FROM nvidia/cuda:12.6.3 AS gpu\n{PLAIN}RUN a --from=b c\nCOPY {copy}\n"
    document = told(tmp_path, f"{text}{PIP} onnxruntime-gpu==1.26.0\n")

    assert from_image(document) == ([(4, f"COPY {' '.join(copy.split())}")] if what else [])
    assert found(document) == ([] if what else [(5, "text-cuda-missing", "error")])


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_the_options_that_take_a_value_are_those_of_the_tools(tool: str) -> None:
    command = [sys.executable, "-m", *tool.split(), "install", "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    named = re.findall(r"^ +(?:(-\w), )?(--[a-z-]+) <", said, re.MULTILINE)
    old = ["--override", "--default-timeout", "--global-option", "--install-option", "--log-file"]
    old += ["--no-build-package", "--source-dir", "-o"]
    options = [option for row in named for option in row if option] + old
    text = "".join(f"RUN {tool} install {option} a onnxruntime\n" for option in options)
    [stage] = read_dockerfile(f"FROM x\n{text}")

    assert {"-C", "--target"} < {*options}
    for row in stage.instructions:
        assert [*installs_of([row]).packages] == ["onnxruntime"], row.text


GPU = "    gpus: all\n"
DB = "services:\n  db:\n    image: postgres\n"
BUILT = [(4, "text-without-gpu", "warning")]
APP = "services:\n  app:\n    image: me/app-cuda:1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (APP, [(2, "text-without-gpu", "error")]),
        (APP + GPU, []),
        (APP + "    runtime: nvidia\n", []),
        (APP + "    devices: [nvidia.com/gpu=all]\n", []),
        (
            APP + "    deploy:\n      resources:\n        reservations:\n"
            "          devices:\n            - capabilities: [gpu]\n",
            [],
        ),
        (
            APP + "    deploy: {resources: {reservations: {devices: [{driver: nvidia}]}}}\n",
            [],
        ),
        (
            APP + "    deploy: {resources: {reservations: {devices: [{driver: x}]}}}\n",
            [(2, "text-without-gpu", "error")],
        ),
        ("services:\n  db:\n    image: postgres\n  x:\n", []),
        (f"{DB}  app:\n    build: .\n", [(4, "text-without-gpu", "warning")]),
        (f"{DB}  app:\n    build: .\n  b:\n    image: b\n{GPU}", []),
        (f"{DB}  app:\n    build: .\n  b:\n    image: gpu\n", [(6, "text-without-gpu", "error")]),
        (f"{DB}  app:\n    build: .\n  b:\n    extends: {{file: a.yml, service: b}}\n", []),
        (f"{APP}    extends: {{file: a.yml, service: a}}\n", []),
        (f"{APP}    extends: {{service: a}}\n  a:\n    image: a\n    runtime: nvidia\n", []),
        (f"{APP}    extends: a\n  a:\n    image: a\n{GPU}", []),
        (f"{APP}    extends: a\n  a:\n    image: a\n", [(2, "text-without-gpu", "error")]),
        (f"{APP}    extends: app\n", []),
        (
            f"{DB}  a:\n    extends: app\n    image: a\n  app:\n    image: gpu\n",
            [(7, "text-without-gpu", "error")],
        ),
        (f"{APP}    extends: {{file: a.yml, service: b}}\n  b:\n    image: b\n", []),
        (f"{DB}  a:\n    extends: b\n  b:\n    build: .\n", [*BUILT, (6, *BUILT[0][1:])]),
        (
            (
                f"services:\n  a:\n    image: a\n{GPU}    environment: [{CAPABILITIES}=all]\n"
                f"    extends: b\n  b:\n    image: b\n    environment: [{CAPABILITIES}=video]\n"
                f"{GPU}"
            ),
            [(9, "image-without-compute", "error")],
        ),
        (f"{APP}    runtime: ${{DOCKER_RUNTIME:-nvidia}}\n", []),
        (f"{APP}    runtime: $R\n", []),
        (f"{APP}    runtime: runc\n", [(2, "text-without-gpu", "error")]),
        (f"{APP}    extends: a\n  a:\n    image: a\n    devices: [$D]\n", []),
        (f"{APP}    extends: a\n{GPU}  a:\n    devices: [$D]\n", []),
        (f"{APP}    devices: [/dev/nvidia0, /dev/nvidiactl]\n", []),
        (f"{APP}    devices: [/dev/snd]\n", [(2, "text-without-gpu", "error")]),
        (
            (
                f"{APP}    deploy: {{resources: {{reservations: {{generic_resources: "
                "[{discrete_resource_spec: {kind: NVIDIA-GPU, value: 1}}]}}}\n"
            ),
            [],
        ),
        (
            f"{APP}    deploy: {{resources: {{limits: {{cpus: $C}}}}}}\n",
            [(2, "text-without-gpu", "error")],
        ),
        (f"{APP}    environment: {{NVIDIA_VISIBLE_DEVICES: none}}\n", []),
        (f"{APP}    environment: [NVIDIA_VISIBLE_DEVICES=void]\n", []),
        (f"{APP}    environment: [NVIDIA_VISIBLE_DEVICES=$G]\n", []),
        (
            f"{APP}    environment: [NVIDIA_VISIBLE_DEVICES=]\n",
            [(2, "text-without-gpu", "error")],
        ),
        (f"{DB}    environment: {{NVIDIA_VISIBLE_DEVICES: }}\n", []),
        (f"{DB}    environment: {{A: 1}}\n", []),
        (
            f"{DB}    environment: {{NVIDIA_VISIBLE_DEVICES: all}}\n",
            [(2, "text-without-gpu", "error")],
        ),
        *(
            (f"services:\n  a:\n    image: {image}\n", [])
            for image in ("app:cpu-no-gpu", "app:no-gpu", "gpustat-exporter", "gpu-or-cpu", "ngpu")
        ),
        *(
            (f"services:\n  a:\n    image: {image}\n", [(2, "text-without-gpu", "error")])
            for image in ("app:gpu", "me/gpus:1", "a:CUDA12", "nvidia/a", "a_gpu_b")
        ),
        (f"{APP}    ports: !reset []\n    gpus: !override all\n", []),
        (f"{APP}    devices: !override [nvidia.com/gpu=all]\n", []),
        (f"{APP}    gpus: !reset all\n", [(2, "text-without-gpu", "error")]),
        (
            (
                f"{APP}    deploy: !override\n      resources: {{reservations: {{devices: "
                "[{driver: cdi, device_ids: [nvidia.com/gpu=all]}]}}\n"
            ),
            [],
        ),
        (f"services:\n  db:\n    image: postgres\n  app:\n    image: app\n{GPU}", []),
        (
            f"{APP}{GPU}    environment:\n      - A=1\n      - NVIDIA_DRIVER_CAPABILITIES=video\n",
            [(7, "image-without-compute", "error")],
        ),
        (
            f"{APP}{GPU}    environment:\n      A: 1\n      NVIDIA_DRIVER_CAPABILITIES: video\n",
            [(7, "image-without-compute", "error")],
        ),
        (f"{APP}{GPU}    environment:\n      NVIDIA_DRIVER_CAPABILITIES: compute\n", []),
        (f"{APP}{GPU}    environment:\n      NVIDIA_DRIVER_CAPABILITIES:\n", []),
        (f"{APP}{GPU}    environment:\n      NVIDIA_DRIVER_CAPABILITIES: $CAPS\n", []),
        (
            (
                "x-env: &env\n  environment:\n    NVIDIA_VISIBLE_DEVICES: all\n"
                "services:\n  app:\n    <<: *env\n    image: app\n"
            ),
            [(5, "text-without-gpu", "error")],
        ),
        ('{"services": {"app": {"image": "app", "gpus": "all"}}}', []),
    ],
)
def test_what_a_compose_file_tells(
    tmp_path: Path, text: str, expected: list[tuple[int, str, str]]
) -> None:
    assert found(told(tmp_path, text, name="compose.yaml")) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "it is no compose file (while parsing a flow node)"),
        *(
            (text, "it has no `services` that can be read")
            for text in (
                *("- x\n", "services: 3\n", "services: {a: 3}\n", "", "a: 3", "[" * 9999),
                *("!!binary services: {}", "services: {a: {environment: 3}}"),
                "services: {}\na: 2020-99-99",
            )
        ),
    ],
)
def test_what_is_no_compose_file(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "compose.yml").write_text(text)
    done = run_here("check-image", "compose.yml", cwd=tmp_path, env={"LANG": "C.UTF-8"})

    assert done.returncode == 7
    assert f"compose.yml cannot be read: {why}" in done.stderr


def test_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    from ortgpu_fix.errors import Cause, Error
    from ortgpu_fix.image.compose import read_compose

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(Error) as caught:
        read_compose(APP, "compose.yaml")
    assert caught.value.values["cause"] == Cause("text-without-yaml")


def shown(tmp_path: Path, name: str, *flags: str, lang: str = "en") -> tuple[int, str, str]:
    env = {"LANG": "C.UTF-8", "ORTGPU_FIX_LANG": lang}
    done = run_here("check-image", name, *flags, cwd=tmp_path, env=env)
    return done.returncode, done.stdout, done.stderr


def test_the_remedy_of_a_variable_names_the_compose_file(tmp_path: Path) -> None:
    text = f"{APP}{GPU}    environment: [{CAPABILITIES}=video]\n"
    [row] = told(tmp_path, text, name="compose.yaml")["findings"]

    assert row["summary"].startswith("NVIDIA_DRIVER_CAPABILITIES is set to video: containers get")
    assert row["remedy"].endswith(" in its place, in the Dockerfile or the compose file")


def test_the_words(tmp_path: Path) -> None:
    (tmp_path / "app.dockerfile").write_text(f"{PLAIN}{PIP} -r a.txt\n{PIP} onnxruntime\n")
    code, said, _ = shown(tmp_path, "app.dockerfile")

    assert code == 1
    assert said == (
        "The text of app.dockerfile\n"
        "  line 3  `onnxruntime` is the CPU build: sessions run on the CPU\n"
        "          → Install `onnxruntime-gpu[cuda,cudnn]` in its place\n"
        "\n"
        "What these install, only the image tells\n"
        "  line 2  -r a.txt\n"
        "\n"
        "An image of this text is not right (see above)\n"
    )
    (tmp_path / "Containerfile").write_text(f"FROM {RUNTIME}\n{PIP} onnxruntime-gpu==1.26.0\n")
    code, said, _ = shown(tmp_path, "Containerfile", "--facts", "example", lang="zh")
    assert code == 0
    assert "\n机器\n  example  ✓ 可用\n" in said
    assert said.endswith("\ndocker save IMAGE -o image.tar && ortgpu-fix check-image image.tar\n")
    code, said, _ = shown(tmp_path, "Containerfile", "--driver", "470.57.02", "--gpu", "8.0")
    assert code == 1
    assert "✗ it is built for CUDA 12" in said


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes(b"FROM \xff\n")
    assert shown(tmp_path, "Dockerfile")[0] == 7
    (tmp_path / "Dockerfile").write_text("hello\n")
    code, _, said = shown(tmp_path, "Dockerfile")
    assert (code, "no FROM is in it" in said) == (7, True)
    (tmp_path / "Dockerfile").write_text(PLAIN)
    code, _, said = shown(tmp_path, "Dockerfile", "--report", "page.html")
    assert (code, "--report" in said) == (2, True)
    assert not (tmp_path / "page.html").exists()
