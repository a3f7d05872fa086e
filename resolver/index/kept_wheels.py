"""Wheels that came before, from an index or a folder, in one folder of this user, for later.

Never needed, and bounded; a wheel is checked when it is taken. Several runs may use the folder at
once: a file comes into it whole, by renaming, and who takes one has it under a name of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

MOST = 10 << 30
"""Bytes that are kept at most: four or five sets of CUDA."""


def take_kept(folder: Path, name: str, path: Path) -> bool:
    """Bring the wheel `name` of `folder` to `path`, unchecked; return whether it is there.

    It is linked where that is possible, and nobody else could change it then.
    """
    source = folder / name
    try:
        about = source.lstat()
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited for
            return False
        path.unlink(missing_ok=True)
        if sys.platform != "win32" and about.st_uid != os.geteuid():
            shutil.copyfile(source, path)
        else:
            link_or_copy(source, path)
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()  # a disk that is full has the first part of it
        return False
    with contextlib.suppress(OSError):
        os.utime(source)  # what was not taken for the longest time goes first
    return True


def keep(folder: Path, path: Path) -> None:
    """Keep the wheel at `path`, and remove what is too much; where that is impossible, do not."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if sys.platform != "win32" and folder.stat().st_uid != os.geteuid():
            return  # under sudo: its owner could not remove it
        if not (folder / path.name).exists():
            with tempfile.TemporaryDirectory(dir=folder) as own:
                link_or_copy(path, Path(own, path.name))
                Path(own, path.name).replace(folder / path.name)
        trim(folder, MOST)


def trim(folder: Path, most: int) -> None:
    """Remove the wheels that were not used for the longest time until `most` bytes stay."""
    found = [(entry.stat(), entry) for entry in folder.glob("*.whl")]
    total = sum(about.st_size for about, _ in found)
    for about, entry in sorted(found, key=lambda row: row[0].st_mtime_ns):
        if total <= most:
            return
        entry.unlink(missing_ok=True)
        total -= about.st_size


def link_or_copy(source: Path, path: Path) -> None:
    """Make `path` another name of the file `source`, or a copy; raises OSError."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)
