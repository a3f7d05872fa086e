"""Which tool manages an environment, and the release that its lock holds."""

from __future__ import annotations

import pytest

from ortgpu_fix.facts.project_tool import environment_named, locked_release, tool_of_folder

UV = """\
version = 1

[[package]]
name = "onnxruntime"
version = "1.20.0"

[[package]]
name = "onnxruntime-gpu"
version = "1.26.0"
source = { registry = "https://pypi.org/simple" }
"""
RECEIPT = """\
[tool]
requirements = [
    { name = "magika" },
    { name = "onnxruntime-gpu", specifier = "==1.26.0" },
]
"""
"""Of `uv tool install`."""
WANTED = """\
[[package]]
name = "app"
version = "0.1.0"

[package.metadata]
requires-dist = [
    { name = "onnxruntime-gpu", specifier = "==1.25.0" },
]

"""
"""In a uv.lock, which has the packages by their names."""


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (UV, "1.26.0"),
        (UV.replace("\n[[", WANTED + "[[", 1), "1.26.0"),
        (UV.replace("-gpu", ""), None),
        (UV.replace("onnxruntime-gpu", "not-onnxruntime-gpu"), None),
        ('dependencies = ["onnxruntime-gpu"]\nversion = "1.26.0"\n', None),
    ],
)
def test_the_release_of_the_gpu_build_in_a_lock(text: str, release: str | None) -> None:
    assert locked_release("uv", text) == release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (RECEIPT, "1.26.0"),
        (RECEIPT.replace('gpu",', 'gpu", extras = ["cuda", "cudnn"],'), "1.26.0"),
        (RECEIPT.replace('"onnx', '"not-onnx'), None),
        (RECEIPT.replace("==", ">="), None),
        (RECEIPT.replace("26.0", "26.0,!=1.26.1"), None),
        (RECEIPT.replace("-gpu", '-gpu" },\n    { name = "magika'), None),
    ],
)
def test_the_release_of_the_gpu_build_in_a_receipt(text: str, release: str | None) -> None:
    assert locked_release("uv-tool", text) == release


PIPFILE_LOCK = """\
{
    "_meta": {"requires": {"python_version": "3.11"}},
    "default": {
        "onnxruntime-gpu": {
            "hashes": [
                "sha256:00"
            ],
            "markers": "python_version >= '3.11'",
            "version": "==1.26.0"
        },
        "packaging": {"version": "==25.0"}
    }
}
"""


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (PIPFILE_LOCK, "1.26.0"),
        (PIPFILE_LOCK.replace("-gpu", ""), None),
        (PIPFILE_LOCK.replace('"version": "==1.26.0"', '"path": "a.whl"'), None),
    ],
)
def test_the_release_of_the_gpu_build_in_a_lock_of_pipenv(text: str, release: str | None) -> None:
    assert locked_release("pipenv", text) == release


@pytest.mark.parametrize(
    ("prefix", "tool"),
    [
        ("/home/x/.cache/pypoetry/virtualenvs/app-Zx-py3.11", "poetry"),
        ("/home/x/.local/share/pdm/venvs/app-Zx-3.11", "pdm"),
        ("/home/x/.cache/pypoetry/venvs/app", None),
        ("/home/x/pypoetry/virtualenvs/old/app", None),
        ("/home/x/pdm/virtualenvs/app", None),
        ("/home/x/virtualenvs/app", None),
        ("/opt/app/.venv", None),
        *(("/", None), ("", None)),
    ],
)
def test_environments_that_a_tool_keeps_outside_of_projects(prefix: str, tool: str | None) -> None:
    assert tool_of_folder(prefix) == tool


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("channels: [conda-forge]\nname:  'app'  # ours\r\n", "app"),
        ("dependencies:\n  - name: app\n", None),
        ("", None),
    ],
)
def test_the_environment_that_a_file_of_conda_makes(text: str, name: str | None) -> None:
    assert environment_named(text) == name
