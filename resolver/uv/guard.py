"""Start an engine so that it ends with whoever started it, and so that others know when it has.

A script, and the other end of it. The script takes a lock, writes its process id into the locked
file, starts the engine and waits for its end; its standard input is a pipe that closes when the
program that started it is gone, and then it kills the engine. It lets go of the lock when the
engine has ended, and what the engine started and left behind does not have the lock. On Windows the
lock is the file itself, open and shared for reading alone, by the engine and what it starts too;
all of them are in one job (`utils.windows_job`), whose only handle is the script's: whatever ends
the script ends them, and the script watches the program that started it.
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
    """Return when the engine that holds `lock` is gone: whoever started it is gone already.

    Raises TimeoutError where it does not go.
    """
    if not os.path.lexists(lock):
        return
    end = time.monotonic() + PATIENCE
    for process in _holders(lock):
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
    _OURSELVES, _FOREVER = -1, 0xFFFFFFFF

    def _become(lock: str, parent: int, argv: list[str]) -> None:
        """Run `argv` to its end, or to that of `parent`, and exit as it did.

        The engine is born into our job: there is no moment at which it could outlive us.
        """
        sys.path.append(str(Path(__file__).parents[1] / "utils"))
        from windows_job import Job  # noqa: PLC0415 - this is a script, and in no package

        job = Job(_OURSELVES, with_us=True)
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        starter = kernel.OpenProcess(_SYNCHRONIZE, 0, parent)
        descriptor = msvcrt.open_osfhandle(_locked(kernel, lock), os.O_RDWR)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        if not starter or kernel.WaitForSingleObject(wintypes.HANDLE(starter), 0) == 0:
            sys.exit(_GONE)
        # Without `close_fds` the engine, and what it starts, has the file open too.
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, close_fds=False) as engine:
            either = (wintypes.HANDLE * 2)(int(engine._handle), starter)  # noqa: SLF001
            kernel.WaitForMultipleObjects(2, either, False, _FOREVER)  # noqa: FBT003
            if engine.poll() is None:
                job.end()  # with us
        sys.exit(engine.returncode)

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
    import select

    _PDEATHSIG = 1
    """PR_SET_PDEATHSIG of linux/prctl.h."""

    def _holders(lock: Path) -> Iterator[str]:
        """Give what the holder of `lock` has written about itself, as long as there is one."""
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        with open(descriptor, "r+", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                file.seek(0)
                yield file.read(32).strip()

    def _become(lock: str, parent: int, argv: list[str]) -> None:
        """Run `argv` to its end, or to the end of our standard input, and exit as it did."""
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        if os.getppid() != parent:  # whoever put everything back did not wait for us
            sys.exit(_GONE)
        awake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        engine = os.fork()
        if engine == 0:
            _start(argv)
        # Of its own group, which can be killed without us: we see it end, and only then let go.
        with contextlib.suppress(OSError):
            os.setpgid(engine, engine)
        while True:
            ready, _, _ = select.select([0, awake], [], [])
            if 0 in ready and not os.read(0, 1):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(engine, signal.SIGKILL)
                os.waitpid(engine, 0)
                sys.exit(_GONE)
            if awake in ready:
                os.read(awake, 64)
            ended, status = os.waitpid(engine, os.WNOHANG)
            if ended:
                break
        code = os.waitstatus_to_exitcode(status)
        sys.exit(code if code >= 0 else f"ended by {signal.Signals(-code).name}")

    def _start(argv: list[str]) -> None:
        """Become the engine, in the child."""
        try:
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
            with contextlib.suppress(Exception):  # a musl without it: our own end kills it, too
                import ctypes  # noqa: PLC0415 - only here

                ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execv(argv[0], argv)  # noqa: S606 - no shell, that is the point
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)


if __name__ == "__main__":
    _become(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
