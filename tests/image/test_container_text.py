"""What the text of a Dockerfile or a compose file tells, with its lines."""

from __future__ import annotations

import json
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
    nothing = told(tmp_path, f"{PLAIN}{PIP} onnxruntime-gpu==99\n")
    assert (nothing["serves"], nothing["findings"]) == (None, [])


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

    assert [(row["line"], row["what"]) for row in document["from_image"]] == [
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
    assert endless[0].text.split() == ["<<E", "a", "b", ";"]


GPU = "    gpus: all\n"
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
        ("services:\n  db:\n    image: postgres\n  x:\n", [(2, "text-without-gpu", "error")]),
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
    "text", ["a: [", "- x\n", "services: 3\n", "services: {a: 3}\n", "", "[" * 9999]
)
def test_what_is_no_compose_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "compose.yml").write_text(text)
    done = run_here("check-image", "compose.yml", cwd=tmp_path, env={"LANG": "C.UTF-8"})

    assert done.returncode == 7
    assert "compose.yml cannot be read: it is no compose file (" in done.stderr


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
