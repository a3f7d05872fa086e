"""Start other programs: the only module that does.

Every child gets a time limit, a process group of its own (so that nothing that it started outlives
it, or us) and a chosen environment.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from .child_output import heard_lines, heard_terminal, passed_on
from .signals import handled, signals_deferred

GRACE_SECONDS = 5.0
"""How long a killed child is waited for: a wedged GPU holds its callers in the kernel, and what
left the process group may hold the pipe."""

_PAUSE = 0.2
"""Seconds between two looks at whether the user wants to end, where waiting does not show it."""
_TERMINALS = frozenset({"SIGINT", "SIGQUIT", "SIGWINCH"})
"""What a terminal sends to all in front of it."""
_PASSED_ON = ("SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
"""What a program of the user's may answer, besides what ends it."""
_running: set[subprocess.Popen[str]] = set()
"""The children that were not waited for: those of a thread that an interrupt left behind."""


_starting = threading.Lock()
"""Held while a child is started, until it is among those."""


class Finished(NamedTuple):
    """How a child ended."""

    argv: tuple[str, ...]
    returncode: int
    """The exit status; negative: the signal that ended it."""
    stdout: str
    stderr: str
    timed_out: bool = False


Runner = Callable[..., Finished]
"""`run`, or a recording of it in tests."""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str],
    text_in: str | None = None,
    folder: str | None = None,
    lifeline: bool = False,
    hear: Callable[[str], None] | None = None,
    drawn: Callable[[str], None] | None = None,
) -> Finished:
    """Run `argv` to its end, or for `timeout` seconds at most, and return how it ended.

    `env` is the whole environment of the child (`child_environment`), `folder` where it starts
    (where we are), `text_in` its standard input (empty where None). With `lifeline` or `hear` that
    stays open until the child has ended instead: a child that reads it learns when we are gone. One
    on a `lifeline` ends by itself where it can. `hear` is called in a thread with each line of the
    standard output as it comes. With `drawn` the standard error is a terminal, where there is one
    to give, and `drawn` is called in a thread with what is drawn there. Raises OSError where the
    program cannot be started. An interrupt ends the child, and is raised.
    """
    output, errors = heard_lines(hear), heard_terminal(drawn)
    process: subprocess.Popen[str] | None = None
    held: IO[str] | None = None
    stays_open = lifeline or hear is not None
    timed_out = False
    try:
        # Nobody would end a child that was started and is not known.
        with signals_deferred(), _starting:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE if stays_open or text_in is not None else subprocess.DEVNULL,
                stdout=output.theirs,
                stderr=errors.theirs,
                cwd=folder,
                env=dict(env),
                encoding="utf-8",
                errors="replace",
                start_new_session=sys.platform != "win32",
                # On Windows a child that is heard gets Ctrl-C too: it ends, and with it the wait.
                creationflags=0 if hear else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            _running.add(process)
            if sys.platform == "win32":
                handle = int(process._handle)  # type: ignore[attr-defined]  # noqa: SLF001
                _jobs[process] = Job(handle, with_us=not stays_open)
            output.began()
            errors.began()
            if stays_open:  # which `communicate` would close
                held, process.stdin = process.stdin, None
        try:
            stdout, stderr = _communicate(process, text_in, timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end(process, held if lifeline else None)
            try:
                stdout, stderr = process.communicate(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired as stuck:
                stdout, stderr = _so_far(stuck.stdout), _so_far(stuck.stderr)
                _let_go(process)
    except BaseException:
        if process is not None:
            _end(process, held if lifeline else None)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            _let_go(process)
        raise
    finally:
        if held:
            held.close()
        if process is not None:
            _kill_group(process)  # what it left behind
            _running.discard(process)
            if sys.platform == "win32":
                _jobs.pop(process).close()
        heard, shown = output.ended(), errors.ended()
    return Finished(
        argv=tuple(argv),
        returncode=process.returncode if process.returncode is not None else -signal.SIGTERM,
        stdout=heard or stdout or "",
        stderr=shown or stderr or "",
        timed_out=timed_out,
    )


def run_in_foreground(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    now_and_then: Callable[[], None] | None = None,
    hear: Callable[[str], None] | None = None,
) -> int:
    """Run a program of the user's, with our own streams, and return its exit status.

    It is negative for the signal that ended it, and it has the open files that we were given. What
    would end us is the program's to answer: a terminal sends its Ctrl-C to both, everything else is
    passed on. `now_and_then` is called while it runs, and `hear` in a thread with the lines of its
    standard error, which is a pipe then, and comes out of ours. Raises OSError where it cannot be
    started.
    """
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    """What came while the program was started: it may run already."""

    def pass_on(number: int, _: object) -> None:
        if not started:
            early.append(number)
        elif not (signal.Signals(number).name in _TERMINALS and _terminal_is_ours()):
            with contextlib.suppress(OSError):
                started[0].send_signal(number)

    with handled(pass_on, _PASSED_ON), passed_on(hear) as errors:
        started.append(subprocess.Popen(list(argv), env=dict(env), close_fds=False, stderr=errors))
        for number in early:
            pass_on(number, None)
        while sys.platform == "win32" or now_and_then is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return started[0].wait(_PAUSE)
            if now_and_then is not None:
                now_and_then()
        return started[0].wait()


def _terminal_is_ours() -> bool:
    """Return whether a terminal sends its Ctrl-C to us, and so to the children in our group."""
    if sys.platform == "win32":
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _end(process: subprocess.Popen[str], lifeline: IO[str] | None) -> None:
    """End a child, and what it started; one that has a lifeline ends its own children first."""
    if lifeline and sys.platform != "win32":
        lifeline.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    _kill_group(process)


def _feed(stdin: IO[str], text: str) -> None:
    """Write `text` to a child in a thread, and close its standard input.

    `communicate` loses what it has not yet written when its time is up: called again it waits for a
    child that waits for the rest (https://github.com/python/cpython/issues/141473).
    """

    def write() -> None:
        with contextlib.suppress(OSError), stdin:
            stdin.write(text)

    threading.Thread(target=write, daemon=True).start()


def _communicate(
    process: subprocess.Popen[str], text_in: str | None, timeout: float
) -> tuple[str, str]:
    """Return all that a child says; raises TimeoutExpired.

    What the child started has its pipes, and may hold them when it is gone: it is killed then, or
    left alone where it made itself a daemon. On Windows a wait does not notice Ctrl-C: so many
    short ones.
    """
    if process.stdin is not None:
        _feed(process.stdin, text_in or "")
        process.stdin = None
    end = time.monotonic() + timeout
    gone = None
    while True:
        now = time.monotonic()
        try:
            return process.communicate(timeout=min(_PAUSE, max(end - now, 0.0)))
        except subprocess.TimeoutExpired as stuck:  # once in a pause
            now = time.monotonic()
            if now >= end:
                raise
            gone = gone or (now if process.poll() is not None else None)
            if gone is not None and now > gone + GRACE_SECONDS:
                _kill_group(process)
                if now > gone + 2 * GRACE_SECONDS:
                    _let_go(process)
                    return _so_far(stuck.stdout), _so_far(stuck.stderr)


if sys.platform == "win32":
    from .windows_job import Job

    _jobs: dict[subprocess.Popen[str], Job] = {}
    """What each child has started, to end with it."""


def _so_far(output: bytes | str | None) -> str:
    """Return the output before the second time limit: bytes, even of a text pipe."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _let_go(process: subprocess.Popen[str]) -> None:
    """Close our ends of the pipes of a child that SIGKILL does not end, or not visibly."""
    process.poll()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


@atexit.register
def _leave_nobody() -> None:
    _starting.acquire(timeout=GRACE_SECONDS)  # and not released: nothing is started any more
    for process in tuple(_running):
        _kill_group(process)


def _kill_group(process: subprocess.Popen[str]) -> None:
    if sys.platform == "win32":
        job = _jobs.get(process)
        job.end() if job else process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def temporary_in(folder: str) -> dict[str, str]:
    """Return the variables by which a child keeps its temporary files in `folder`.

    Libraries leave some there: onnxruntime 1.31 the file `.ses` of its telemetry.
    """
    return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
