"""Runs an engine under a lock, so that a later run can tell whether it still runs.

This file is also the script that does it. An engine may outlive a killed ortgpu-fix. The script
takes the lock, writes its process id into the locked file and becomes the engine, which holds the
lock until it ends; where ortgpu-fix is gone by then, the script ends instead. Not used on Windows.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 20.0
"""Seconds to wait for a killed engine; one that hangs in the kernel may take longer."""


def guarded_command(argv: Sequence[str], lock: Path) -> list[str]:
    """Return the command that runs `argv` holding `lock`."""
    if sys.platform == "win32":
        return list(argv)
    return [sys.executable, "-I", "-S", __file__, str(lock), str(os.getpid()), *argv]


def wait_for_engine(lock: Path) -> None:
    """End the engine that holds `lock`, if one does. Raises TimeoutError where it does not end."""
    if sys.platform == "win32" or not lock.exists():
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    end = time.monotonic() + PATIENCE
    with lock.open("r+", encoding="ascii") as file:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            file.seek(0)
            process = file.read().strip()
            if process.isdigit():
                with contextlib.suppress(OSError):
                    os.killpg(int(process), signal.SIGKILL)
            if time.monotonic() > end:
                raise TimeoutError(f"process {process} does not end")
            time.sleep(0.02)


def _become(lock: str, parent: int, argv: list[str]) -> None:
    import fcntl  # noqa: PLC0415

    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    if os.getppid() != parent:  # a roll back may be under way
        sys.exit("the program that started this is gone")
    os.set_inheritable(descriptor, True)  # noqa: FBT003
    os.execv(argv[0], argv)  # noqa: S606 - no shell, that is the point


if __name__ == "__main__":
    _become(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
