"""Write files whole or not at all, hash them, and say what a failing disk means."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import Error, cause

MOST = 20_000_000
"""Bytes of a file that people name, at most; the facts of a machine have 30,000."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The errors of a disk that has no room."""
_CHUNK = 1 << 20


def write(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`, whole or not at all; text in UTF-8.

    An existing file keeps its permissions, and its owner where this user may; a link is followed.
    What is no file, as a pipe or `/dev/null`, stays, and gets it. Raises Error `file-unwritable`.
    """
    import tempfile  # noqa: PLC0415 - a plan writes nothing, and starts faster without

    with _unwritable(path):
        data = content if isinstance(content, bytes) else content.encode()
        goal = path.resolve()
        before = path.stat() if path.exists() else None
        mode = before.st_mode if before else stat.S_IFREG | 0o666 & ~_umask()
        if stat.S_IFMT(mode) not in {stat.S_IFREG, stat.S_IFDIR}:
            return _pour(path, data)
        # Not by the name of what it becomes, which may be as long as names may be.
        descriptor, name = tempfile.mkstemp(dir=goal.parent, prefix=".ortgpu-fix-")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            if before:
                give_to_owner(name, before)
            Path(name).chmod(mode & 0o777)
            Path(name).replace(goal)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def give_to_owner(path: str | Path, like: os.stat_result) -> None:
    """Give a file or link to the user and group of another, where this user may: root may."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.chown(path, like.st_uid, like.st_gid, follow_symlinks=False)


def is_file(path: Path) -> bool:
    """Return whether a search finds a file at `path`: not where this user may not look.

    `Path.is_file` raises PermissionError there up to Python 3.13.
    """
    return os.path.isfile(path)  # noqa: PTH113


def check_place(path: Path) -> None:
    """Raise Error `file-unwritable` where `write` would find no place for `path`; write nothing."""
    import tempfile  # noqa: PLC0415 - as in `write`

    with _unwritable(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() or not path.exists():  # resolved, a pipe (`/dev/stdout`) is nowhere
            tempfile.NamedTemporaryFile(dir=path.resolve().parent).close()
        if path.is_file():
            try:
                path.open("r+b").close()
            except PermissionError as error:
                if error.errno == errno.EPERM:  # `chattr +i`; a mode alone does not hinder `write`
                    raise


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise Error("file-unwritable", file=path, cause=cause("path-no-text")) from error
    except OSError as error:
        raise Error("file-unwritable", file=path, cause=error.strerror) from error


def _pour(path: Path, data: bytes) -> None:
    """Write `data` to what is no file; a pipe that nobody reads is not waited for."""
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb", buffering=0) as stream:
        while data:
            data = data[stream.write(data) :]


def _umask() -> int:
    mask = os.umask(0o022)  # reading it means setting it
    os.umask(mask)
    return mask


def read_bounded(path: Path) -> bytes:
    """Return what is in `path`, which may be a pipe. Raises OSError, also for more than `MOST`."""
    with path.open("rb") as stream:
        content = stream.read(MOST + 1)
    if len(content) > MOST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def disk_error(error: OSError, path: Path) -> Error:
    """Return the Error for a write that failed: `disk-full`, or `disk-failed` with the reason."""
    if error.errno in FULL:
        return Error("disk-full", folder=str(path.parent))
    return Error("disk-failed", path=str(path), reason=error.strerror or type(error).__name__)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hexadecimal. Raises OSError."""
    return hash_of(path).hexdigest()


def hash_of(path: Path) -> hashlib._Hash:
    """Return the SHA-256 of the file at `path`, to which more can be added. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest
