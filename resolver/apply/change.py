"""Change an environment so that it can be put back at any instant.

What is about to be done is in the journal, on the disk, before it is done; what has to go
is moved aside, file by file, by rename; what comes is known by name before the engine starts.
`restore` reads the same journal to go back, whoever was killed whenever.
"""

# Paths are text here: there are tens of thousands of them.
# ruff: noqa: PTH105, PTH106, PTH108, PTH112, PTH113, PTH114, PTH116

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .journal import Begin, Install, Mark, MovedFiles, Record, RemovedFolders, encode
from .removal import emptied_folders
from .state_folder import Site, join, sync_folder

_TEMPORARY = re.compile(r"\.tmp\w{6}|\.?.+\.tmp")
"""What uv and pip call a file before it has its name; a killed engine leaves it behind."""
_LOCK = re.compile(r"\.tmp\w{6}")
"""What uv's lock of a venv is called in the venv's own folder, empty, before it is `.lock`.

Source: https://github.com/astral-sh/uv/issues/12200
"""
_LONGEST = 80


class JournaledChange:
    """A change that is under way; the caller holds the lock of the environment."""

    def __init__(self, site: Site) -> None:
        """Choose the next number; nothing is written yet."""
        numbers = [int(entry.name) for entry in site.state.iterdir() if entry.name.isdigit()]
        self.site = site
        self.number = max(numbers, default=0) + 1
        self.folder = site.state / str(self.number)
        self.touched = False
        """True from the first change to the environment on."""
        self._aside = self.folder / "aside"

    def begin(self, begin: Begin) -> None:
        """Open the journal; raises OSError where the disk does not allow it."""
        self._aside.mkdir(parents=True)
        append(self.folder, begin)
        sync_folder(self.folder)
        sync_folder(self.site.state)

    def set_aside(self, paths: Sequence[str]) -> None:
        """Move the files at the absolute `paths` aside, and remove the folders that this empties.

        Raises OSError; what was done by then is in the journal.
        """
        moves = tuple(
            (self.site.relative(path), f"{at:06d}-{Path(path).name[-_LONGEST:]}")
            for at, path in enumerate(paths)
        )
        append(self.folder, MovedFiles(moves=moves))
        for path, (_, kept) in zip(paths, moves, strict=True):
            move(path, join(str(self._aside), kept))
            self.touched = True
        folders = sorted(emptied_folders(paths, self.site), key=len, reverse=True)
        empty: list[str] = []
        for folder in folders:
            names = {entry.path for entry in os.scandir(folder)} if os.path.isdir(folder) else {""}
            if names <= set(empty):
                empty.append(folder)
        if empty:
            rows = tuple(
                (self.site.relative(path), os.stat(path).st_mode & 0o7777) for path in empty
            )
            append(self.folder, RemovedFolders(folders=rows))
        for folder in empty:
            os.rmdir(folder)
        sync_folder(self._aside)
        for folder in {str(Path(path).parent) for path in paths}:
            if os.path.isdir(folder):
                sync_folder(folder)

    def announce(
        self, created: Iterable[str], whole: Iterable[str], folders: Iterable[str] = ()
    ) -> None:
        """Note which files (absolute paths) and folders the engine is going to write."""
        files = sorted(set(created))
        empty = sorted(set(folders))
        around = emptied_folders([*files, *innermost(empty)], self.site)
        standing = sorted(folder for folder in around if os.path.isdir(folder))
        relative = self.site.relative
        append(
            self.folder,
            Install(
                created=tuple(map(relative, files)),
                whole=tuple(map(relative, sorted(set(whole)))),
                standing=tuple(map(relative, standing)),
                temporary=tuple(map(relative, sorted(engine_temporaries(self.site, standing)))),
                folders=tuple(map(relative, empty)),
            ),
        )

    def installed(self, created: Iterable[str]) -> None:
        """Bring what the engine wrote, and that it is done, to the disk."""
        there = [path for path in created if os.path.isfile(path)]
        with ThreadPoolExecutor(max_workers=8) as pool:
            for _ in pool.map(_sync_file, there):
                pass
        for folder in {*emptied_folders(there, self.site), self.site.purelib, self.site.platlib}:
            sync_folder(folder)
        append(self.folder, Mark(step="installed"))

    def commit(self) -> None:
        """Say that the change is done and good: from here on only `undo` takes it back."""
        append(self.folder, Mark(step="commit"))


def append(folder: Path, record: Record) -> None:
    """Write `record` to the journal in `folder`; on return it is on the disk."""
    descriptor = os.open(folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        data = encode(record).encode()
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(source: str, goal: str) -> None:
    """Rename the file or link `source` to `goal`, over what is there.

    Where a rename cannot do it (another filesystem, an image's lower layer) it is copied with its
    mode and times, brought to the disk and only then removed.
    """
    try:
        os.replace(source, goal)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = f"{goal}.ortgpu-fix.tmp"
        shutil.copy2(source, part, follow_symlinks=False)
        if not os.path.islink(part):
            _sync_file(part)
        os.replace(part, goal)
        os.unlink(source)


def innermost(folders: Iterable[str]) -> list[str]:
    """Return a path in each of `folders`, whose parents are the folder and those around it."""
    return [join(folder, "x") for folder in folders]


def engine_temporaries(site: Site, folders: Iterable[str]) -> set[str]:
    """Return the files that look like an engine's temporary ones, in `folders` and not below them.

    And in the environment's own folders. The one around them all may be a project's, or `/usr`:
    there only what is certainly uv's lock counts.
    """
    found: set[str] = set()
    for folder in {*folders, site.purelib, site.platlib, site.scripts}:
        if os.path.isdir(folder):
            names = [entry.name for entry in os.scandir(folder) if not entry.is_dir()]
            found |= {join(folder, name) for name in names if _TEMPORARY.fullmatch(name)}
    for entry in os.scandir(site.prefix):
        with contextlib.suppress(OSError):  # another's may be gone by now
            if _LOCK.fullmatch(entry.name) and entry.is_file() and entry.stat().st_size == 0:
                found.add(entry.path)
    return found


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
