"""Find the interpreter of the target environment."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import Error
from ..facts.model import OWN_ENVIRONMENT
from ..facts.project_tool import RECEIPTS
from ..utils.child_environment import child_environment
from ..utils.files import is_file
from ..utils.process import run
from ..utils.programs import find_program
from .libraries import find_text

DOT_VENV = ".venv"
FOLDERS = (DOT_VENV, "venv")
"""Where a virtual environment lies in the folder of a project, by custom."""
ON_PATH = "PATH"
"""What names an environment whose Python is the first on PATH, as in many images, for a program
that pipx or uv has in an environment of its own."""
_VERSION = re.compile(r"3\.\d{1,2}(\.\d{1,2})?")
_LAUNCHED = re.compile(r"py:\d[\w.-]*|-V:[\w./-]+")
"""Forms of Windows' launcher: https://docs.python.org/3/using/windows.html#launcher."""
SECONDS = 30.0
"""For the launcher, which may have to look through the registry of a slow machine."""
_MARKS = ("pyvenv.cfg", "bin/activate", "Scripts/activate")
"""Files of a virtual environment, be it whole or not."""
_PACKAGES = ("lib/*/site-packages/*-info", "Lib/site-packages/*-info")
_REQUIRED = re.compile(r"^Requires-Dist: *([\w.-]+)(?!.*\bextra\b)", re.MULTILINE)
_ALONE = ("ortgpu-fix", "setuptools", "pkg-resources", "wheel", "uv", "pyyaml", "pysocks")
"""This program, which requires pip, what else installs it, and what is advised to be beside it."""
_PLACES = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


def find_interpreter(python: str | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the interpreter of the environment to work on.

    `python` is an interpreter, its name on PATH (on Windows without `.exe` too), what the launcher
    `py` knows it by (`py:3.11`, `-V:3.12`), or the folder of an environment. Where it is None:
    the active virtual environment, an active conda environment other than base, a virtual
    environment whose Python is the first on PATH, a `.venv` or `venv` in `cwd`, conda's base where
    it is active, the interpreter that runs this program. A link is not followed, for a venv's
    interpreter is one.

    Raises Error `python-not-found`, `python-folder-empty`, `python-broken` (a dangling link),
    `python-only-version`, `python-not-launched`, and `own-environment` (what pipx or uv made for
    this program alone).
    """
    if python is not None and _LAUNCHED.fullmatch(python):
        return _launched(python, environ)
    if python is not None:
        path = Path(os.path.abspath(cwd / Path(python).expanduser()))  # noqa: PTH100 - no links
        if not os.path.lexists(path) and os.path.basename(python) == python:  # noqa: PTH119
            path = Path(find_program(python, environ) or path)
        if is_version(python, environ, cwd):
            raise Error("python-only-version", version=python)
        return _interpreter(path)
    chosen = chosen_by(None, environ, cwd)
    if chosen == OWN_ENVIRONMENT:
        if is_private(Path(sys.prefix)):
            raise Error("own-environment", path=sys.prefix)
        return Path(sys.executable)
    if chosen == ON_PATH and (first := _first_on_path(environ, cwd)):
        return first
    return _interpreter(cwd / environ.get(chosen, chosen))


def _launched(python: str, environ: Mapping[str, str]) -> Path:
    """Return the interpreter that the launcher `py` starts; none is installed for that.

    `-3.11` is the form that every launcher knows. What both launchers install without being asked
    is turned off (https://docs.python.org/3/using/windows.html#install-on-demand and
    `PYTHON_MANAGER_AUTOMATIC_INSTALL` of the install manager).
    """
    env = child_environment(environ, "look")
    env |= {"PYTHON_MANAGER_AUTOMATIC_INSTALL": "false", "PYTHONUTF8": "1"}
    py = find_program("py", environ)
    words = [python.replace("py:", "-"), "-c", "import sys; print(sys.executable)"]
    finished = None
    if py is not None:
        with contextlib.suppress(OSError):
            finished = run([py, *words], timeout=SECONDS, env=env)
    if finished is None or finished.returncode != 0:
        raise Error("python-not-launched", python=python)
    return _interpreter(Path(finished.stdout.strip()))


def chosen_by(python: str | None, environ: Mapping[str, str], cwd: Path) -> str:
    """Return what names the environment: `--python`, a variable, a folder, or `OWN_ENVIRONMENT`."""
    if python is not None:
        return "--python"
    if environ.get("VIRTUAL_ENV"):
        return "VIRTUAL_ENV"
    conda = environ.get("CONDA_PREFIX")
    if conda and environ.get("CONDA_DEFAULT_ENV") != "base":
        return "CONDA_PREFIX"
    if _first_on_path(environ, cwd):
        return ON_PATH
    for folder in FOLDERS:
        if any(is_file(cwd / folder / mark) for mark in _MARKS):
            return folder  # conda's base is active in every shell
    return "CONDA_PREFIX" if conda else OWN_ENVIRONMENT


def _first_on_path(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the first Python on PATH where it is that of a virtual environment.

    None where this program lies in an application's environment: that one is meant. `uvx` puts what
    it made for this program before all others.
    """
    if not is_private(Path(sys.prefix)):
        return None
    folders = [cwd / folder for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    pythons = (folder / name for folder in folders for name in ("python", "python.exe"))
    for python in pythons:
        prefix = python.parent.parent
        if not is_file(python) or is_private(prefix):
            continue
        return python if is_file(prefix / "pyvenv.cfg") else None
    return None


def is_version(python: str, environ: Mapping[str, str], cwd: Path) -> bool:
    """Return whether `--python` is a version (`3.11`), and no file or program of that name."""
    if not _VERSION.fullmatch(python) or os.path.lexists(cwd / python):
        return False
    return find_program(python, environ) is None


def is_private(prefix: Path) -> bool:
    """Return whether pipx, `uv tool` or `uvx` made the environment for one program alone.

    The first two leave a file of theirs in it; the third makes it in uv's cache.
    """
    made = any(is_file(prefix / mark) for mark in RECEIPTS.values())
    return made or prefix.parent.name == "archive-v0"


def is_alone(environ: Mapping[str, str], cwd: Path) -> bool:
    """Return whether nothing names an environment, and this program's own venv holds no other.

    What pipx or uv made is refused by every command. One that shows the packages of the Python
    below it may be an application's; one whose Python is first on PATH is active, as in an image.
    """
    prefix = Path(sys.prefix)
    settings = find_text(prefix / "pyvenv.cfg")
    if settings is None or is_private(prefix) or chosen_by(None, environ, cwd) != OWN_ENVIRONMENT:
        return False
    if re.search(r"(?m)^include-system-site-packages *= *true", settings):
        return False
    folders = [str(cwd / folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    first = find_program("python", {**environ, "PATH": os.pathsep.join(folders)})  # not run
    if first and Path(first).parent.parent.resolve() == prefix.resolve():
        return False
    infos = [info for pattern in _PACKAGES for info in prefix.glob(pattern)]
    others = {_canonical(info.name.partition("-")[0]): info for info in infos}
    waiting = [*_ALONE]
    while waiting:
        if info := others.pop(waiting.pop(), None):
            head = (find_text(info / "METADATA") or "").partition("\n\n")[0]
            waiting += map(_canonical, _REQUIRED.findall(head))
    return not others


def require_environment(python: str | None, environ: Mapping[str, str], cwd: Path) -> None:
    """Raise Error `own-environment` where `is_alone` is so and `--python` names no environment."""
    if python is None and is_alone(environ, cwd):
        raise Error("own-environment", path=sys.prefix)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _interpreter(path: Path) -> Path:
    if path.is_dir():
        places = [path / place for place in _PLACES if os.path.lexists(path / place)]
        if not places:
            os.scandir(path).close()  # who may not look into it cannot say what it holds
            raise Error("python-folder-empty", path=path)
        path = places[0]
    for file in (path, Path(f"{path}.exe")):
        if file.is_file():  # Windows has `nul` in every folder, and no drive is a file
            return file
    if path.is_symlink():
        raise Error("python-broken", path=path, target=path.readlink())
    raise Error("python-not-found", path=path)
