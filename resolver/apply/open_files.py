"""Finds processes that use files to set aside.

On Linux a mapped file can be moved and stays usable: the user is told. On Windows an open file may
be impossible to move, which must be known before the first one is moved.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import Error


def processes_using(paths: Iterable[str], proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Return `command (pid)` for every other process that has one of `paths` mapped, sorted.

    Processes of other users may be missing; on a system without `/proc` the result is empty.
    """
    libraries = frozenset(path for path in paths if ".so" in path)
    processes = []
    for entry in proc.glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        try:
            maps = (entry / "maps").read_text(encoding="utf-8", errors="surrogateescape")
            # 7f2c3e000000-7f2c3e022000 r--p 00000000 fe:00 1234  /venv/…/libcudnn.so.9
            mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/")}
            if mapped & libraries:
                command = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
                processes.append(f"{command} ({entry.name})")
        except (OSError, IndexError):  # it has ended, or is another user's
            continue
    return tuple(sorted(processes))


def check_files_movable(paths: Sequence[str]) -> None:
    """Raise Error `files-in-use` where, on Windows, one of `paths` cannot be moved."""
    for path in paths if sys.platform == "win32" else ():
        try:
            os.rename(path, path)  # noqa: PTH104 - only tests the permission
        except OSError as error:  # noqa: PERF203
            raise Error("files-in-use", path=path) from error
