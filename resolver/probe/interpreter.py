"""Which interpreter to work on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error

_PLACES = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


def find_interpreter(python: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the interpreter of the environment to work on.

    `python` is an interpreter, its name on PATH, or the folder of an environment. Where it is None:
    the active virtual environment, an active conda environment other than base, a `.venv` in `cwd`,
    the interpreter that runs this program. A link is not followed: the environment is where it is.

    Raises Error `python-not-found`, `python-folder-empty` (no interpreter in it) and
    `python-broken` (a link to an interpreter that is gone).
    """
    if python is not None:
        path = Path(os.path.abspath(cwd / Path(python).expanduser()))  # noqa: PTH100 - no links
        if not os.path.lexists(path) and os.path.basename(python) == python:  # noqa: PTH119
            path = Path(shutil.which(python, path=environ.get("PATH")) or path)
        return _interpreter(path)
    active = environ.get("VIRTUAL_ENV")
    if not active and environ.get("CONDA_DEFAULT_ENV", "base") != "base":
        active = environ.get("CONDA_PREFIX")
    if active:
        return _interpreter(cwd / active)
    if (cwd / ".venv" / "pyvenv.cfg").is_file():
        return _interpreter(cwd / ".venv")
    return Path(sys.executable)


def _interpreter(path: Path) -> Path:
    if not path.is_dir():
        return _existing(path)
    found = next((path / place for place in _PLACES if os.path.lexists(path / place)), None)
    if found is None:
        raise Error("python-folder-empty", path=path)
    return _existing(found)


def _existing(path: Path) -> Path:
    if path.exists():
        return path
    if path.is_symlink():
        raise Error("python-broken", path=path, target=path.readlink())
    raise Error("python-not-found", path=path)
