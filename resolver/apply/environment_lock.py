"""The lock of an environment: one run at a time changes it.

It is a lock of the operating system, which ends with its holder, even a killed one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import Error
from ..uv.guard import wait_for_engine
from .state_folder import Site, check_state_folder, make_folder, read_only, remove_tree

_LONGEST = 4096
"""Characters that a holder writes about itself, at most."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
PATIENCE = 5.0
"""Seconds that the lock of a holder that is gone may still be held: by a child of it that was
started in its last moment, and has the lock until it has become another program."""


@contextlib.contextmanager
def hold_environment_lock(site: Site) -> Iterator[None]:
    """Hold the lock of this environment.

    Raises Error `environment-locked` with the process id and the command of the holder, and
    `environment-read-only`, also where its filesystem has no locks; `state-refused`.
    """
    path = site.state / "lock"
    check_state_folder(site)
    descriptor = -1
    end = time.monotonic() + PATIENCE
    while descriptor < 0:
        try:
            make_folder(str(path.parent), site)
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
            if descriptor < 0:
                continue  # its last holder removed the folder just now
        except OSError as error:
            raise read_only(site.purelib, error) from error
        try:
            locked = _try_lock(descriptor)
            if locked and os.fstat(descriptor).st_nlink > 1:  # what is written would be in another
                path.unlink()
        except OSError as error:
            os.close(descriptor)
            raise read_only(site.purelib, error) from error
        if not locked or not _same(descriptor, path):
            os.close(descriptor)
            descriptor = -1  # its last holder tidied it away just now: once more
        if not locked:
            about = _holder(path)
            if time.monotonic() > end or _alive(about.get("pid")):
                pid, command = about.get("pid", "?"), about.get("command", "?")
                raise Error("environment-locked", pid=pid, command=command)
            time.sleep(0.02)
    try:
        about = {"pid": os.getpid(), "command": " ".join(Path(arg).name for arg in sys.argv[:2])}
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, json.dumps(about).encode())
        yield
    finally:
        _release(descriptor, site)


def _holder(path: Path) -> dict[str, object]:
    """Return what the holder of the lock has written about itself."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with path.open(encoding="utf-8") as file:
            about = json.loads(file.read(_LONGEST))
        return about if isinstance(about, dict) else {}
    return {}


def _alive(pid: object) -> bool:
    """Return whether there is a process `pid`."""
    if not isinstance(pid, int):
        return False
    if sys.platform == "win32":  # where `os.kill` would end it
        return _runs(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release(descriptor: int, site: Site) -> None:
    """Let go of the lock, and of the whole state folder where nothing else is in it."""
    with contextlib.suppress(OSError):
        wait_for_engine(site.engine_lock)  # of a run that was killed just now
        remove_tree(site.stage)
    with contextlib.suppress(OSError):
        if {entry.name for entry in site.state.iterdir()} <= {"lock", "engine.lock"}:
            site.engine_lock.unlink(missing_ok=True)
            if sys.platform == "win32":  # where an open file, as the next holder's, stays
                os.close(descriptor)
                descriptor = -1
            (site.state / "lock").unlink()
            site.state.rmdir()
    if descriptor >= 0:
        os.close(descriptor)


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _runs(pid: int) -> bool:
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        process = kernel.OpenProcess(_SYNCHRONIZE, 0, pid)
        if not process:
            return bool(kernel.GetLastError() == _ACCESS_DENIED)  # somebody else's
        try:
            return bool(kernel.WaitForSingleObject(ctypes.c_void_p(process), 0) == _TIMEOUT)
        finally:
            kernel.CloseHandle(ctypes.c_void_p(process))

    _SYNCHRONIZE, _ACCESS_DENIED, _TIMEOUT = 0x100000, 5, 0x102

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # a byte that nobody reads or writes
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
