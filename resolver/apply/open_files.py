"""Who has files open that are about to leave.

On Linux a file that is mapped can be moved and stays usable to whoever has it: a word to the
user is enough. On Windows a file may be open in a way that forbids it, which must be known before
the first one is moved.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import Error

_PROC = Path("/proc")


def processes_using(paths: Iterable[str], proc: Path = _PROC) -> tuple[str, ...]:
    """Return `command (pid)` for every other process that has one of `paths` mapped, sorted.

    Empty where the system does not say; the processes of other users are not always seen.
    """
    wanted = frozenset(path for path in paths if ".so" in path)
    found = []
    try:
        entries = [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return ()
    for entry in entries:
        if int(entry.name) == os.getpid():
            continue
        try:
            maps = (entry / "maps").read_text(encoding="utf-8", errors="surrogateescape")
            # 7f2c3e000000-7f2c3e022000 r--p 00000000 fe:00 1234  /venv/…/libcudnn.so.9
            mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/")}
            if mapped & wanted:
                command = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
                found.append(f"{command} ({entry.name})")
        except (OSError, IndexError):  # it has ended, or is somebody else's
            continue
    return tuple(sorted(found))


def check_files_movable(paths: Sequence[str]) -> None:
    """Raise Error `files-in-use` where, on Windows, one of `paths` cannot be moved now."""
    for path in paths if sys.platform == "win32" else ():
        try:
            os.rename(path, path)  # noqa: PTH104 - asks for the right to move it, and no more
        except OSError as error:  # noqa: PERF203
            raise Error("files-in-use", path=path) from error
