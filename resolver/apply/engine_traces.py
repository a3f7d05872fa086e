"""What an engine has written, and what it leaves behind where it is killed.

Nothing is taken for its work that it cannot have written: not because of a name, and not because it
is shorter than it should be. A file is the engine's where it was written while the engine ran and
holds what the wheel has, or the beginning of that.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH112, PTH119

from __future__ import annotations

import contextlib
import os
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..index.download import file_digest
from .journal import Fingerprint
from .state_folder import Site, join
from .wheel_reader import UNREADABLE

_TEMPORARY = re.compile(r"\.tmp\w{6}|.+[a-z0-9_]{8}\.tmp")
"""Temporary file names of uv, and of pip: the name of the file to come and eight characters."""
_LOCK = re.compile(r"\.tmp\w{6}")
"""Temporary name of uv's lock in the folder of a venv, an empty file that becomes `.lock`.

Source: https://github.com/astral-sh/uv/issues/12200
"""
_SLACK = 3_000_000_000
"""Nanoseconds by which the clock of files may be off, and by which the guard may be late."""
_SMALL = 1 << 20
"""Bytes up to which a file of the right size is read although it was written at the right time."""
_ENOUGH = 16 << 20
"""Bytes of a file that are held against the wheel's at most."""


class EngineRun(NamedTuple):
    """When the engine of a change ran, in nanoseconds of the clock of its files."""

    start: float
    end: float

    @classmethod
    def of(cls, site: Site, folder: Path) -> EngineRun:
        """Return when the engine of the change in `folder` can have run.

        From the reserve, which is there until the roll back begins, to the last sign of life in the
        file `engine.lock`; see `engine.guard`. On Windows the guard gives none.
        """
        start, end = _modified(folder / "reserve"), _modified(site.state / "engine.lock")
        if sys.platform == "win32":
            return cls(float("-inf"), float("inf"))
        first = float("-inf") if start is None else start - _SLACK
        # An engine that never started wrote nothing: the lock is another one's, or is not there.
        last = max(start or 0, end or 0)
        return cls(first, last + _SLACK if last else float("inf"))

    def wrote(self, site: Site, path: str, here: Fingerprint, size: int, digest: str) -> bool:
        """Return whether the engine may have left the file `here` at `path`, whole or not.

        `size` and `digest` are those of the wheel, -1 and "" for what an engine makes itself.
        """
        kind, found, modified = here
        if kind != "file" or not self.start <= modified <= self.end:
            return False
        if size < 0:
            return True
        if found != size:
            return found < size and _is_beginning(path, size, site.stage / "wheels")
        sure = size > _SMALL and self.end != float("inf")
        return sure or not digest or file_digest(Path(path)) == digest

    def temporaries(self, site: Site, folders: Iterable[str]) -> set[str]:
        """Return the temporary files in `folders` that the engine may have left."""
        found = engine_temporaries(site, folders)
        return {path for path in found if self.start <= (_modified(Path(path)) or 0) <= self.end}


def _modified(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime_ns
    return None


def _is_beginning(path: str, size: int, wheels: Path) -> bool:
    """Return whether the file at `path` begins as one of `size` bytes in a staged wheel.

    After a power cut zeros may follow. Without the wheels nobody can tell.
    """
    name = os.path.basename(path)
    for wheel in sorted(wheels.glob("*.whl")):
        with contextlib.suppress(OSError, *UNREADABLE), zipfile.ZipFile(wheel) as packed:
            for member in packed.infolist():
                if member.file_size == size and os.path.basename(member.filename) == name:
                    with packed.open(member) as whole, Path(path).open("rb") as part:
                        begun = part.read(_ENOUGH)
                        if whole.read(len(begun)).startswith(begun.rstrip(b"\0")):
                            return True
    return False


def engine_temporaries(site: Site, folders: Iterable[str]) -> set[str]:
    """Return files with temporary names of an engine, directly in `folders` or the environment's.

    The prefix of the environment may be a project's folder, or `/usr`: of it only uv's lock counts.
    """
    paths: set[str] = set()
    for folder in {*folders, site.purelib, site.platlib, site.scripts}:
        if os.path.isdir(folder):
            names = [entry.name for entry in os.scandir(folder) if not entry.is_dir()]
            paths |= {join(folder, name) for name in names if _TEMPORARY.fullmatch(name)}
    for entry in os.scandir(site.prefix):
        with contextlib.suppress(OSError):  # it may be gone by now
            if _LOCK.fullmatch(entry.name) and entry.is_file() and entry.stat().st_size == 0:
                paths.add(entry.path)
    return paths
