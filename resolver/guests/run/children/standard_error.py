"""Standard error while a session is made that asks for more than the CPU: a file of ours.

So onnxruntime's own words are known, which it writes there past Python. They are passed on,
unchanged, when it is made; the starter passes on what a program that was killed has left in the
file. What starts another program meanwhile gives it the usual standard error, and not the file.
"""

# Importing pathlib would take as long as all the rest:
# ruff: noqa: ANN401, PTH118
from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

from .reporting import FOLDER, Process, replace

if sys.platform == "win32":
    import _winapi as starters
    import msvcrt
    import subprocess  # noqa: TID251 - whose starts are looked at, and none made
else:
    import _posixsubprocess as starters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_WORDS = 16_384
"""Bytes of onnxruntime's words that are reported of one session."""


class Words:
    """Standard error, redirected to a file of ours while somebody wants to know what is said."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin with the usual standard error."""
        self.lock = threading.RLock()  # the handler of a signal may start a program
        self.users = self.starting = 0
        self.usual = self.file = -1
        self.passed = 0

    def begin(self) -> int | None:
        """Redirect it, and return where in the file the words begin; None where that fails."""
        with self.lock, contextlib.suppress(OSError):
            flush()
            if not self.users:
                name = os.path.join(FOLDER, f"words-{Process.token}")
                self.usual = os.dup(2)
                try:
                    self.file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
                except OSError:  # the starter has ended, and its folder is gone
                    os.close(self.usual)
                    raise
                if sys.platform == "win32":  # no end of a line may change, and so their count
                    msvcrt.setmode(self.file, os.O_BINARY)
                os.ftruncate(self.file, 0)
                self.passed = 0
            self.users += 1
            self.direct()
            return os.fstat(self.file).st_size
        return None

    def end(self, begin: int | None) -> str:
        """Return what was said since `begin`; what was not passed on yet is."""
        if begin is None:
            return ""
        with self.lock, contextlib.suppress(OSError):
            flush()
            self.users -= 1
            if not self.users:
                os.dup2(self.usual, 2)
            said = self.read(begin, MOST_WORDS)
            while True:
                more = self.read(self.passed, 1 << 20)
                if not more:
                    break
                self.passed += len(more)
                pass_on(self.usual, more)
            if not self.users:
                os.ftruncate(self.file, 0)
                os.close(self.file)
                os.close(self.usual)
            return said.decode("utf-8", "replace")
        return ""

    def direct(self) -> None:
        """Let standard error be what it has to be now, while a session is made."""
        if self.users:
            os.dup2(self.usual if self.starting else self.file, 2)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Let standard error be the usual one while another program is started, which keeps it."""
        self.count_starting(1)
        try:
            yield
        finally:
            self.count_starting(-1)

    def count_starting(self, more: int) -> None:
        """Count the programs that are being started."""
        with self.lock, contextlib.suppress(OSError):
            self.starting += more
            self.direct()

    def read(self, begin: int, most: int) -> bytes:
        """Return a part of the file."""
        os.lseek(self.file, begin, os.SEEK_SET)
        return os.read(self.file, most)

    def after_fork(self) -> None:
        """Give the child its usual standard error back."""
        if self.users:
            with contextlib.suppress(OSError):
                os.dup2(self.usual, 2)
                os.close(self.file)
                os.close(self.usual)
        self.renew()


def flush() -> None:
    """Let Python's own standard error write what it holds back."""
    with contextlib.suppress(Exception):
        sys.stderr.flush()


def pass_on(file: int, data: bytes) -> None:
    """Write all of `data`; a pipe that does not block may be full for a while."""
    end = time.monotonic() + 5.0
    while data and time.monotonic() < end:
        try:
            data = data[os.write(file, data) :]
        except BlockingIOError:  # noqa: PERF203
            time.sleep(0.005)


WORDS = Words()


def starting_apart() -> None:
    """Look at whatever starts another program."""
    posix = sys.modules[os.name]
    for name in ("system", "execv", "execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            replace(os, name, starting)
            setattr(posix, name, getattr(os, name))  # where a pickle looks for it
    for owner, name in (
        (starters, "fork_exec"),
        (starters, "CreateProcess"),
        (sys.modules.get("subprocess"), "_fork_exec"),
    ):
        if hasattr(owner, name):
            replace(owner, name, starting)
    if sys.platform == "win32":  # which asks for the handles first
        replace(subprocess.Popen, "__init__", starting)


def starting(original: Any) -> Any:
    """Return the function that starts a program, with the usual standard error."""

    def start(*given: Any, **named: Any) -> Any:
        with WORDS.apart():
            return original(*given, **named)

    return start


starting_apart()
