"""Large files that were hashed, so that neither this run nor the next hashes them again.

uv links a file out of its cache into each environment: who writes into one of them writes into all,
and uv does not look again. Whatever is done to a file, a link more or less included, changes its
`st_ctime`, which nobody can set. So a file is what it was as long as one of its paths says that
nothing was done since; and that has to be asked before uv makes the next link. On Windows
`st_ctime` is when a file was made, and all are hashed there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import Error
from ..utils.files import file_digest, write
from ..utils.json_reader import read_rows

LARGE = 1 << 20
"""Bytes from which a file is remembered: to hash a smaller one takes no time."""
NAME = "hashed.jsonl"
"""The file of the rows, in the folder of the wheels that are kept."""
_MOST = 4 << 20
"""Bytes that are read of it: rows for some hundred environments."""
Identity = tuple[object, ...]


def identity(about: os.stat_result) -> Identity:
    """Return what stays the same of a file when it gets another link or name."""
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def unchanged_files(kept: Path | None) -> dict[Identity, str]:
    """Return the SHA-256, in hexadecimal, of the files to which nothing was done since then."""
    return {tuple(seen[:-1]): digest for _, seen, digest in _rows(kept)}


def has_content(path: str, size: int, sha256: str) -> bool:
    """Return whether there is a file at `path`, no link, of this size and SHA-256 in hexadecimal.

    It is read only where the size is the same, and a large one once as long as nothing is done to
    it.
    """
    with contextlib.suppress(OSError):
        about = os.lstat(path)
        if stat.S_ISREG(about.st_mode) and about.st_size == size:
            if size <= LARGE:
                return file_digest(Path(path)) == sha256
            return _digest(path, (*identity(about), about.st_ctime_ns)) == sha256
    return False


@functools.lru_cache(maxsize=2)
def _digest(path: str, _: Identity) -> str:
    return file_digest(Path(path))


def remember(kept: Path | None, hashes: Mapping[str, str]) -> None:
    """Keep which files of `hashes`, path to SHA-256, are linked; where that is impossible, do not.

    The hashes are those of the files as they came.
    """
    if kept is None or sys.platform == "win32":
        return
    linked = ((path, _seen(path), digest) for path, digest in hashes.items() if digest)
    rows = [
        json.dumps({"path": path, "seen": seen, "sha256": digest}) + "\n"
        for path, seen, digest in (*_rows(kept), *linked)
        if seen
    ]
    with contextlib.suppress(OSError, Error):
        kept.mkdir(parents=True, exist_ok=True)
        if not (kept / NAME).is_symlink():
            write(kept / NAME, "".join(rows))


def _rows(kept: Path | None) -> Iterator[tuple[str, list[object], str]]:
    """Yield path, what was seen of it and SHA-256 of each file that looks as it did then."""
    if kept is None or sys.platform == "win32":
        return
    file = kept / NAME
    try:
        if not stat.S_ISREG(file.lstat().st_mode):  # a pipe would be waited for
            return
        with file.open("rb") as content:
            text = content.read(_MOST).decode(errors="replace")
    except OSError:
        return
    for row in read_rows(text):
        path, seen, digest = row.text("path"), row.values("seen"), row.text("sha256")
        if path and seen and digest and seen == _seen(path):
            yield path, seen, digest


def _seen(path: str) -> list[object] | None:
    """Return what is seen of a large file that has another link; None for what is none."""
    try:
        about = os.stat(path)  # noqa: PTH116 - a path that was read may be anything
    except (OSError, ValueError):
        return None
    if about.st_size <= LARGE or about.st_nlink == 1:
        return None
    return [*identity(about), about.st_ctime_ns]
