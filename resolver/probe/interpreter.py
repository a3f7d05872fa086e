"""Find the interpreter of the target environment."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error
from ..facts.model import OWN_ENVIRONMENT

DOT_VENV = ".venv"
_VERSION = re.compile(r"3\.\d{1,2}(\.\d{1,2})?")
_PLACES = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


def find_interpreter(python: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the interpreter of the environment to work on.

    `python` is an interpreter, its name on PATH, or the folder of an environment. Where it is None:
    the active virtual environment, an active conda environment other than base, a `.venv` in `cwd`,
    conda's base where it is active, the interpreter that runs this program. A link is not followed,
    for a venv's interpreter is one.

    Raises Error `python-not-found`, `python-folder-empty`, `python-broken` (a dangling link),
    `python-only-version`, and `own-environment` (what pipx or uv made for this program alone).
    """
    if python is not None:
        path = Path(os.path.abspath(cwd / Path(python).expanduser()))  # noqa: PTH100 - no links
        if not os.path.lexists(path) and os.path.basename(python) == python:  # noqa: PTH119
            path = Path(shutil.which(python, path=environ.get("PATH")) or path)
        if is_version(python, environ, cwd):
            raise Error("python-only-version", version=python)
        return _interpreter(path)
    chosen = chosen_by(None, environ, cwd)
    if chosen == OWN_ENVIRONMENT:
        if is_private(Path(sys.prefix)):
            raise Error("own-environment", path=sys.prefix)
        return Path(sys.executable)
    return _interpreter(cwd / environ.get(chosen, chosen))


def chosen_by(python: str | None, environ: Mapping[str, str], cwd: Path) -> str:
    """Return what names the environment: `--python`, a variable, `.venv`, or `OWN_ENVIRONMENT`."""
    if python is not None:
        return "--python"
    if environ.get("VIRTUAL_ENV"):
        return "VIRTUAL_ENV"
    conda = environ.get("CONDA_PREFIX")
    if conda and environ.get("CONDA_DEFAULT_ENV") != "base":
        return "CONDA_PREFIX"
    if (cwd / DOT_VENV / "pyvenv.cfg").is_file():  # conda's base is active in every shell
        return DOT_VENV
    return "CONDA_PREFIX" if conda else OWN_ENVIRONMENT


def is_version(python: str, environ: Mapping[str, str], cwd: Path) -> bool:
    """Tell whether `--python` is a version (`3.11`), and no file or program of that name."""
    if not _VERSION.fullmatch(python) or os.path.lexists(cwd / python):
        return False
    return shutil.which(python, path=environ.get("PATH")) is None


def is_private(prefix: Path) -> bool:
    """Tell whether pipx, `uv tool` or `uvx` made the environment for one program alone.

    The first two leave a file of theirs in it; the third makes it in uv's cache.
    """
    marks = ("pipx_metadata.json", "uv-receipt.toml")
    return any((prefix / mark).is_file() for mark in marks) or prefix.parent.name == "archive-v0"


def _interpreter(path: Path) -> Path:
    if path.is_dir():
        places = [path / place for place in _PLACES if os.path.lexists(path / place)]
        if not places:
            raise Error("python-folder-empty", path=path)
        path = places[0]
    if path.exists():
        return path
    if path.is_symlink():
        raise Error("python-broken", path=path, target=path.readlink())
    raise Error("python-not-found", path=path)
