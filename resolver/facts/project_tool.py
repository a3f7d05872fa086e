"""The tool that manages an environment, by its lock, its receipt or the folder's name."""

from __future__ import annotations

import re
from pathlib import PurePath

LOCKS = {
    "uv": "uv.lock",
    "poetry": "poetry.lock",
    "pdm": "pdm.lock",
    "pipenv": "Pipfile.lock",
}
"""The lock beside an environment in the folder of its project."""
RECEIPTS = {"uv-tool": "uv-receipt.toml", "pipx": "pipx_metadata.json"}
"""What a tool writes into the environment that it makes for one program alone."""
PIPENV_NOTE = ".project"
"""Of Pipenv, in an environment that lies elsewhere: the directory of its project."""
ENVIRONMENT_FILES = ("environment.yml", "environment.yaml")
"""What makes a conda environment, in the folder of the project."""
_NAMED = re.compile(r"""^name:[ \t]*["']?([^\s"'#]+)""", re.MULTILINE)
_ELSEWHERE = {"poetry": ("pypoetry", "virtualenvs"), "pdm": ("pdm", "venvs")}
"""The tool's own folder, and the folder of environments in it."""
_LOCKED = re.compile(r'^name = "onnxruntime-gpu"\s*\nversion = "([^"]+)"', re.MULTILINE)
"""In the lock of each of them that is TOML: a table of a package begins with these lines."""
_IN_PIPFILE_LOCK = re.compile(r'"onnxruntime-gpu": \{[^{}]*"version": "==([^"*,]+)"')
_RECEIVED = re.compile(r'\{ name = "onnxruntime-gpu",[^}]* specifier = "==([^"*,]+)"')
"""In the receipt of `uv tool`: `    { name = "onnxruntime-gpu", specifier = "==1.26.0" },`."""


def locked_release(tool: str, text: str) -> str | None:
    """Return the release of onnxruntime-gpu in the lock or receipt of `tool`, or None."""
    patterns = {"uv-tool": _RECEIVED, "pipenv": _IN_PIPFILE_LOCK}
    match = patterns.get(tool, _LOCKED).search(text)
    return match[1] if match else None


def environment_named(text: str) -> str | None:
    """Return the name of the environment that an environment.yml makes, or None."""
    match = _NAMED.search(text)
    return match[1] if match else None


def tool_of_folder(prefix: str) -> str | None:
    """Return the tool that manages the environment at `prefix` in the tool's folder, or None."""
    *above, folder, _ = ("", "", *PurePath(prefix).parts)
    for tool, (home, name) in _ELSEWHERE.items():
        if folder == name and home in above:
            return tool
    return None
