"""Start other programs: the only place that does.

Every child gets a time limit, its own process group (so that nothing it started outlives
it, or us) and an environment that was chosen for it.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

GRACE_SECONDS = 5.0
"""How long a killed child is waited for: a wedged GPU holds its callers in the kernel, and what
left the process group may hold the pipe."""

_running: set[subprocess.Popen[str]] = set()
"""The children that were not waited for: those of a thread that an interrupt left behind."""


class Finished(NamedTuple):
    """How a child ended."""

    argv: tuple[str, ...]
    """The program and its arguments."""
    returncode: int
    """The exit status; negative: the signal that ended it."""
    stdout: str
    stderr: str
    timed_out: bool = False
    """True where the time limit ended it."""


class Runner(Protocol):
    """Whatever can run a program: `run`, or a recording of it in tests."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        text_in: str | None = None,
    ) -> Finished:
        """Run `argv` for at most `timeout` seconds; raise OSError where it cannot be started."""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    text_in: str | None = None,
) -> Finished:
    """Run `argv` to its end, or for `timeout` seconds at most, and return how it ended.

    `env` is the whole environment of the child (ours where it is None), `text_in` its standard
    input (empty where None). Raises OSError where the program cannot be started.
    """
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL if text_in is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        encoding="utf-8",
        errors="replace",
        start_new_session=sys.platform != "win32",
    )
    _running.add(process)
    timed_out = False
    try:
        stdout, stderr = process.communicate(text_in, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        _kill_group(process)
        try:
            stdout, stderr = process.communicate(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired as stuck:
            stdout, stderr = _so_far(stuck.stdout), _so_far(stuck.stderr)
            _let_go(process)
    except BaseException:
        _kill_group(process)
        raise
    finally:
        _running.discard(process)
    return Finished(
        argv=tuple(argv),
        returncode=process.returncode if process.returncode is not None else -signal.SIGTERM,
        stdout=stdout,
        stderr=stderr,
        timed_out=timed_out,
    )


def _so_far(output: bytes | str | None) -> str:
    """Return what a child had said when it was given up: bytes here, even of a text pipe."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _let_go(process: subprocess.Popen[str]) -> None:
    """Close our ends of the pipes of a child that even SIGKILL does not end, or not visibly."""
    process.poll()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


@atexit.register
def _leave_nobody() -> None:
    for process in tuple(_running):
        _kill_group(process)


def _kill_group(process: subprocess.Popen[str]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without what would change how a child Python behaves or imports.

    PYTHON* is dropped as a whole: PYTHONPATH or PYTHONHOME of the caller's shell would make the
    target interpreter see another environment than it has in use. And no child leaves bytecode in
    an environment that is to be as it was.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def install_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for an engine that must install the staged files and nothing else.

    Beyond `own_environment`, every PIP_* and UV_* setting is dropped and both engines are told to
    read no configuration file: a stray find-links once put another torch into a staged install.
    """
    child = {
        name: value
        for name, value in own_environment(environ).items()
        if not name.startswith(("PIP_", "UV_")) and name != "VIRTUAL_ENV"
    }
    child |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "UV_NO_CONFIG": "1",
    }
    return child
