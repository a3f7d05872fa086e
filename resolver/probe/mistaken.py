"""Find what comes before an environment's own onnxruntime and programs, and where it came from.

Nothing is run: paths are compared, and the script `activate` is read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ..errors import Error
from ..facts.target import Target
from ..utils.files import is_file
from ..utils.programs import find_program
from .libraries import find_text

_IS_ONNXRUNTIME = re.compile(r"onnxruntime([-_.]gpu)?(?![-_.\w])", re.IGNORECASE)
_FILES = ("onnxruntime/__init__.py", "onnxruntime.py", "onnxruntime.pyc")
_PLACE = re.compile(r"^\s*(?:export )?VIRTUAL_ENV=(.+)$", re.MULTILINE)


def find_shadow(target: Target, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the file that `import onnxruntime` takes before the environment's, or None.

    Python puts before an environment the folder of the program, for which `cwd` stands here, the
    folders of PYTHONPATH, and for one that is no venv the user's site. A folder without
    `__init__.py` does not go before a package
    (https://docs.python.org/3/library/sys.html#sys.path, PEP 420).
    """
    own = {Path(folder).resolve() for folder in (target.purelib, target.platlib)}
    for folder in _folders_before(target, environ, cwd):
        if folder.resolve() in own:
            return None
        extensions = (f"onnxruntime{suffix}" for suffix in EXTENSION_SUFFIXES)
        for name in (*_FILES, *extensions):
            if is_file(folder / name):
                return folder / name
    return None


def _folders_before(target: Target, environ: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    if not environ.get("PYTHONSAFEPATH"):
        yield cwd
    paths = environ.get("PYTHONPATH", "")
    for entry in paths.split(os.pathsep) if paths else ():
        yield cwd / entry
    if target.user_site is not None and not environ.get("PYTHONNOUSERSITE"):
        yield Path(target.user_site)


def find_other_command(target: Target, environ: Mapping[str, str]) -> Path | None:
    """Return the program that PATH has before one of this environment's, or None.

    Looked at are the console scripts of the distributions that require onnxruntime, where the
    environment is active: its own folder of scripts is on PATH.
    """
    path = environ.get("PATH", "")
    own = os.path.realpath(target.scripts)
    if all(os.path.realpath(folder) != own for folder in path.split(os.pathsep) if folder):
        return None
    for installed in target.installed:
        if target.holds(installed) and any(map(_IS_ONNXRUNTIME.match, installed.requires)):
            text = find_text(Path(installed.metadata_path, "entry_points.txt")) or ""
            section = text.partition("[console_scripts]")[2].partition("\n[")[0]
            for name in re.findall(r"(?m)^([\w.-]+)\s*=", section):
                found = find_program(name, environ)
                mine = find_program(name, {**environ, "PATH": target.scripts})
                if mine and found and os.path.realpath(Path(found).parent) != own:
                    return Path(found)
    return None


def find_old_place(target: Target) -> str | None:
    """Return the folder that a moved or copied environment was made in; None: it lies there.

    Its script `activate` names that folder, as venv, virtualenv and uv write it. The scripts that
    pip makes begin with the same folder: in a moved environment they start no Python, or that of
    the old one (https://docs.python.org/3/library/venv.html#how-venvs-work). One that was made to
    be moved (`uv venv --relocatable`) names none.
    """
    if target.kind != "venv":
        return None
    prefix = Path(target.prefix).resolve()
    places = list(_places(find_text(Path(target.scripts) / "activate") or ""))
    if any(Path(place).resolve() == prefix for place in places):
        return None
    return places[0] if places else None


def check_complete(target: Target, interpreter: Path) -> None:
    """Refuse a virtual environment without `pyvenv.cfg`: its Python is the one below, and says so.

    Raises Error `venv-without-config`.
    """
    folder, prefix = interpreter.parents[1], Path(target.prefix)
    left = _PLACE.search(find_text(interpreter.parent / "activate") or "")
    if left and folder.resolve() != prefix.resolve():
        raise Error("venv-without-config", path=folder, prefix=prefix)


def _places(script: str) -> Iterator[str]:
    """Yield the absolute folders: `VIRTUAL_ENV="/srv/app/.venv"`, `export VIRTUAL_ENV=/srv/app`."""
    for written in _PLACE.findall(script):
        try:
            words = shlex.split(written, posix="\\" not in written)
        except ValueError:
            continue
        place = "".join(words[:1]).strip("\"'")
        if "$" not in place and Path(place).is_absolute():
            yield place
