"""Start an engine so that whoever comes after us knows whether it still runs.

A script, and the other end of it. An engine outlives the program that started it where that is
killed. The script takes a lock, writes its process id into the locked file and becomes the engine,
which holds the lock to its own end; where the program that started it is gone by then, it does not
begin at all. On Windows the lock is the file itself, open and shared for reading alone; there the
script starts the engine instead, which has the file open too, and both end with the program that
started them (`windows_job`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PATIENCE = 20.0
"""Seconds that a killed engine may take to end; one that hangs in the kernel takes longer."""
_PAUSE = 0.02
_GONE = "the program that started this is gone"


def guarded_command(argv: Sequence[str], lock: Path) -> list[str]:
    """Return the command that runs `argv` holding `lock`."""
    python = sys.executable
    if sys.platform == "win32":  # a venv's python.exe only starts another one, and waits for it
        python = getattr(sys, "_base_executable", None) or python
    return [python, "-I", "-S", __file__, str(lock), str(os.getpid()), *argv]


def wait_for_engine(lock: Path) -> None:
    """End the engine that holds `lock`, if one does, and return when it is gone.

    Raises TimeoutError where it does not go.
    """
    if not lock.exists():
        return
    end = time.monotonic() + PATIENCE
    for process in _holders(lock):
        if process.isdigit():
            with contextlib.suppress(OSError):
                _end(int(process))
        if time.monotonic() > end:
            raise TimeoutError(f"process {process} does not end")
        time.sleep(_PAUSE)


if sys.platform == "win32":
    import ctypes
    import msvcrt
    import subprocess  # noqa: TID251 - this starts what `process.run` was asked to
    from ctypes import wintypes

    def _holders(lock: Path) -> Iterator[str]:
        while True:
            with contextlib.suppress(PermissionError):  # its holder lets nobody write
                os.close(os.open(lock, os.O_RDWR))
                return
            yield lock.read_text(encoding="ascii").strip()

    def _end(process: int) -> None:
        os.kill(process, signal.SIGTERM)  # TerminateProcess

    class _Attributes(ctypes.Structure):
        """SECURITY_ATTRIBUTES of minwinbase.h."""

        _fields_ = (
            ("length", wintypes.DWORD),
            ("descriptor", wintypes.LPVOID),
            ("inherit", wintypes.BOOL),
        )

    _READ_WRITE = 0xC0000000
    _SHARE_READ, _OPEN_ALWAYS = 1, 4
    _SYNCHRONIZE, _ERROR_SHARING_VIOLATION = 0x100000, 32

    def _become(lock: str, parent: int, argv: list[str]) -> None:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        starter = kernel.OpenProcess(_SYNCHRONIZE, 0, parent)
        descriptor = msvcrt.open_osfhandle(_locked(kernel, lock), os.O_RDWR)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        if not starter or kernel.WaitForSingleObject(wintypes.HANDLE(starter), 0) == 0:
            sys.exit(_GONE)
        # Without `close_fds` the engine, and what it starts, has the file open too.
        sys.exit(subprocess.call(argv, close_fds=False))

    def _locked(kernel: ctypes.WinDLL, lock: str) -> int:
        """Open the file for us and those we start alone, when whoever has it is gone."""
        attributes = _Attributes(ctypes.sizeof(_Attributes), None, 1)
        kernel.CreateFileW.restype = wintypes.HANDLE
        while True:
            handle = kernel.CreateFileW(
                ctypes.c_wchar_p(lock),
                wintypes.DWORD(_READ_WRITE),
                _SHARE_READ,
                ctypes.byref(attributes),
                _OPEN_ALWAYS,
                0,
                None,
            )
            if handle != wintypes.HANDLE(-1).value:
                return int(handle)
            if ctypes.get_last_error() != _ERROR_SHARING_VIOLATION:
                raise ctypes.WinError(ctypes.get_last_error())
            time.sleep(_PAUSE)

else:
    import fcntl

    def _holders(lock: Path) -> Iterator[str]:
        """Give what the holder of `lock` has written about itself, as long as there is one."""
        with lock.open("r+", encoding="ascii") as file:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                file.seek(0)
                yield file.read().strip()

    def _end(process: int) -> None:
        os.killpg(process, signal.SIGKILL)

    def _become(lock: str, parent: int, argv: list[str]) -> None:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        if os.getppid() != parent:  # whoever put everything back did not wait for us
            sys.exit(_GONE)
        os.set_inheritable(descriptor, True)  # noqa: FBT003
        os.execv(argv[0], argv)  # noqa: S606 - no shell, that is the point


if __name__ == "__main__":
    _become(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
