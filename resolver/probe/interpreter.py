"""Find the interpreter of the target environment."""

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
    the interpreter that runs this program. A link is not followed, for a venv's interpreter is one.

    Raises Error `python-not-found`, `python-folder-empty` and `python-broken` (a dangling link).
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
