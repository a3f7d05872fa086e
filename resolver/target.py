"""Which interpreter to work on, and asking it what it is.

Shell.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from .environment import OLDEST, Target, read_target
from .errors import Error
from .run import Finished, Runner, own_environment

__all__ = ["Target", "ask", "find_interpreter", "target_of"]

SECONDS = 20.0
"""How long an interpreter may take to say what it is; a network file system may be slow."""
_PLACES = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"


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


def target_of(
    python: str | None, *, environ: Mapping[str, str], cwd: Path, runner: Runner
) -> Target:
    """Return the environment to work on, as it describes itself.

    Raises what `find_interpreter`, `ask` and `read_target` raise.
    """
    interpreter = find_interpreter(python, environ, cwd)
    return read_target(ask(interpreter, runner=runner, environ=environ), str(interpreter))


def ask(
    interpreter: Path, *, runner: Runner, environ: Mapping[str, str], seconds: float = SECONDS
) -> str:
    """Return what `inside.py` prints in `interpreter`.

    The script goes to its standard input: nothing needs to be readable there. `-I` is not used, for
    it would hide the user's own site-packages, which the interpreter normally sees. `-B`
    is: looking at an environment must not write into it, not even the bytecode of what its `.pth`
    files import.

    Raises Error `python-failed` where it cannot be started or ends with an error, `python-hangs`
    after `seconds`, `python-too-old` where it is too old even to read the script.
    """
    script = (files("ortgpu_fix") / "inside.py").read_text(encoding="utf-8")
    env = own_environment(environ)
    if "PYTHONNOUSERSITE" in environ:
        env["PYTHONNOUSERSITE"] = environ["PYTHONNOUSERSITE"]
    answer = _run(interpreter, ["-B", "-"], runner=runner, env=env, seconds=seconds, text_in=script)
    if answer.returncode != 0:
        old = _run(interpreter, ["-c", _VERSION], runner=runner, env=env, seconds=seconds)
        version = old.stdout.strip()
        numbers = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise Error("python-too-old", path=interpreter, version=version)
        raise Error(
            "python-failed",
            path=interpreter,
            cause=f"exit {answer.returncode}: {_tail(answer)}",
        )
    return answer.stdout


def _run(
    interpreter: Path,
    arguments: list[str],
    *,
    runner: Runner,
    env: Mapping[str, str],
    seconds: float,
    text_in: str | None = None,
) -> Finished:
    try:
        answer = runner([str(interpreter), *arguments], timeout=seconds, env=env, text_in=text_in)
    except OSError as error:
        raise Error("python-failed", path=interpreter, cause=error.strerror or error) from error
    if answer.timed_out:
        raise Error("python-hangs", path=interpreter, seconds=f"{seconds:g}")
    return answer


def _tail(answer: Finished) -> str:
    lines = (answer.stderr or answer.stdout).strip().splitlines()
    return lines[-1][:200] if lines else "no word why"
