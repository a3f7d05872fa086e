"""Sets files aside, and journals every step of a change, so that it can be rolled back.

A step is in the journal, on the disk, before it is done. Files are moved into the folder `aside`
by renaming, and the files that come are moved from the staging folder to their paths: each of them
is known before. `rollback` reads the same journal.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH102, PTH104, PTH105, PTH106, PTH108, PTH112, PTH114, PTH116

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..errors import Error
from ..utils.files import give_to_owner
from .environment_files import copy_of, emptied_folders, fingerprint
from .history import LAST, change_folders
from .journal import (
    Begin,
    Install,
    Mark,
    MovedFiles,
    Record,
    RemovedFolders,
    Written,
    encode,
)
from .state_folder import AT_ONCE, Site, join, make_folder, shares, sync_folder

_RESERVE = 1 << 18
_RESERVE_PER_FILE = 256
"""Bytes kept back so that a roll back finds room on a full disk, for entries of folders and for the
journal. Its folders exist before the first change, and files are renamed: no more is needed."""
_SHOWN = 80
"""Bytes."""
_PATIENCE = 2.0
"""Seconds that a file on Windows may be in use before moving it has failed."""


class Incoming(NamedTuple):
    """A file that comes."""

    path: str
    """Where it belongs; absolute."""
    source: str
    """Where it lies."""
    digest: str
    """SHA-256 in hexadecimal, empty where unknown."""


class JournaledChange:
    """A change in progress; the caller holds the lock of the environment."""

    def __init__(self, site: Site) -> None:
        """Choose the next number; write nothing. Raises Error `state-refused`."""
        numbers = [number for number, _ in change_folders(site)]
        self.site = site
        self.number = max(numbers, default=0) + 1
        if self.number > LAST:
            raise Error("state-refused", path=site.state / str(LAST), why=LAST)
        self.folder = site.state / str(self.number)
        self.begun = False
        """True once there is a journal, by which the change can be rolled back."""
        self.touched = False
        """True after the first change to the environment."""
        self._backups = self.folder / "aside"

    def begin(self, begin: Begin, files: int = 0) -> None:
        """Open the journal, and reserve what rolling back the change of so many `files` needs.

        Raises OSError where the disk does not allow it.
        """
        self.folder.mkdir()
        self._backups.mkdir()
        (self.folder / "trash").mkdir()
        with (self.folder / "reserve").open("xb") as file:
            file.write(bytes(_RESERVE + files * _RESERVE_PER_FILE))
            os.fsync(file.fileno())
        append(self.folder, begin)
        self.begun = True
        sync_folder(self.folder)
        sync_folder(self.site.state)

    def back_up(self, paths: Sequence[str], copied: Collection[str] = ()) -> None:
        """Set the files at the absolute `paths` aside; remove folders that are empty then.

        Those that are `copied` stay until another one takes their place: a user's own files.

        What somebody else has removed meanwhile is not waited for. Raises OSError; what was done by
        then is in the journal.
        """
        seen = {path: known for path in paths if (known := fingerprint(path)) is not None}
        moves = tuple(
            (self.site.relative(path), f"{at:06d}-{_end_of_name(path)}")
            for at, path in enumerate(seen)
        )
        append(self.folder, MovedFiles(moves=moves, seen=tuple(seen.values())))
        for path, (_, name) in zip(seen, moves, strict=True):
            goal = join(str(self._backups), name)
            copy(path, goal) if path in copied else move(path, goal)
            self.touched = True
        folders = sorted(emptied_folders(seen, self.site), key=len, reverse=True)
        empty: list[str] = []
        for folder in folders:
            names = {entry.path for entry in os.scandir(folder)}
            if names <= set(empty) and not os.path.ismount(folder):
                empty.append(folder)
        if empty:
            removed = tuple(
                (self.site.relative(path), os.stat(path).st_mode & 0o7777) for path in empty
            )
            kept = tuple(f"folder-{at:06d}" for at in range(len(empty)))
            append(self.folder, RemovedFolders(folders=removed, names=kept))
            for folder, name in zip(empty, kept, strict=True):
                move_folder(folder, join(str(self._backups), name))
        sync_folder(self._backups)
        for folder in {str(Path(path).parent) for path in seen}:
            if os.path.isdir(folder):
                sync_folder(folder)

    def place(
        self, incoming: Sequence[Incoming], whole: Iterable[str], folders: Iterable[str] = ()
    ) -> None:
        """Move the files that come, which are on the disk (`sync_files`), to their paths.

        `whole` are folders in which all files are theirs, `folders` come without a file. Raises
        OSError; what is to come is in the journal before the first move.
        """
        coming = sorted(incoming)
        files = [file.path for file in coming]
        empty = sorted(set(folders))
        around = emptied_folders(files, self.site, empty)
        seen = [fingerprint(file.source) for file in coming]
        paths = {
            "created": files,
            "whole": sorted(set(whole)),
            "standing": sorted(folder for folder in around if os.path.isdir(folder)),
            "folders": empty,
        }
        relative = {name: tuple(map(self.site.relative, places)) for name, places in paths.items()}
        sizes = tuple(known[1] if known else -1 for known in seen)
        hashes = tuple(file.digest for file in coming)
        append(self.folder, Install(**relative, sizes=sizes, hashes=hashes))
        append(self.folder, Written(seen=tuple(seen)))
        for path in sorted({*map(os.path.dirname, files), *empty}):
            make_folder(path, self.site)
        for file in coming:
            self.touched = True
            move(file.source, file.path)
        for folder in {*emptied_folders(files, self.site), self.site.purelib, self.site.platlib}:
            sync_folder(folder)
        now = [fingerprint(path) for path in files]
        if now != seen:  # a copy to another filesystem may have another time
            append(self.folder, Written(seen=tuple(now)))

    def commit(self) -> None:
        """Record that the change is done and verified: now only `undo_last` rolls it back."""
        append(self.folder, Mark(step="commit"))


def _end_of_name(path: str) -> str:
    """Return as much of the end of a name as people need to know a file again.

    What is counted are bytes: the name itself may have as many as the system allows.
    """
    return os.fsencode(os.path.basename(path))[-_SHOWN:].decode(errors="ignore")  # noqa: PTH119


def sync_files(paths: Iterable[str]) -> None:
    """Flush files to the disk. Raises OSError."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_sync_share, shares(list(paths))))


def _sync_share(paths: Iterable[str]) -> None:
    for path in paths:
        _sync_file(path)


def append(folder: Path, record: Record) -> None:
    """Append `record` to the journal in `folder`; on return it is on the disk.

    None but the first makes a journal: one that is gone must be noticed.
    """
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
    flags |= os.O_CREAT if isinstance(record, Begin) else 0
    flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(folder / "journal", flags, 0o644)
    try:
        data = encode(record).encode()
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(source: str, goal: str) -> None:
    """Rename the file or link `source` to `goal`, replacing that.

    Where renaming is impossible (another filesystem, a lower layer of an image) the file is copied
    with its mode and times, flushed to the disk and only then removed. On Windows a program that
    looks at new files (a virus scanner) is waited for.
    """
    try:
        _rename(source, goal)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, goal)
        os.unlink(source)


def copy(source: str, goal: str) -> None:
    """Copy the file or link `source`, with its mode and times, to `goal`, whole or not at all."""
    part = copy_of(goal)
    shutil.copy2(source, part, follow_symlinks=False)
    if not os.path.islink(part):
        _sync_file(part)
    give_to_owner(part, os.lstat(source))
    os.replace(part, goal)


def move_folder(source: str, goal: str) -> None:
    """Rename the empty folder `source` to `goal`: it keeps its inode, which may be the last.

    Where it cannot be renamed (another filesystem, a lower layer of an image) `goal` is made first.
    """
    try:
        os.rename(source, goal)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        os.mkdir(goal)
        os.rmdir(source)


def _rename(source: str, goal: str) -> None:
    end = time.monotonic() + (_PATIENCE if sys.platform == "win32" else 0)
    while True:
        try:
            os.replace(source, goal)
        except PermissionError:  # noqa: PERF203 - it is waited for
            if time.monotonic() >= end:
                raise
            time.sleep(0.05)
        else:
            return


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
