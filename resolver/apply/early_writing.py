"""Has Linux write to the disk what an engine unpacks, while it unpacks more.

By itself it begins only when a tenth of the memory is waiting to be written, which on a large
machine is more than is ever installed: all of that would be waited for before the change.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_SECONDS = 1.0


@contextlib.contextmanager
def written_early(folder: Path) -> Iterator[None]:
    """Have the filesystem of `folder` written once a second. Raises nothing of its own.

    That all is written is made sure later, by `set_aside.sync_files`.
    """
    done = threading.Event()
    if sys.platform == "linux":
        threading.Thread(target=_write, args=(folder, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _write(folder: Path, done: threading.Event) -> None:
    """Source: https://man7.org/linux/man-pages/man2/syncfs.2.html."""
    with contextlib.suppress(ImportError, OSError, AttributeError):  # a Python without ctypes
        import ctypes  # noqa: PLC0415 - only who installs needs it

        syncfs = ctypes.CDLL(None).syncfs
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            while not done.wait(_SECONDS):
                syncfs(descriptor)
        finally:
            os.close(descriptor)
