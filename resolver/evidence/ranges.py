"""Files on an index, read in parts with range requests."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Protocol

from .errors import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

    from .wheels import IndexWheel

TAIL = 64 * 1024
"""First read, from the end: holds the central directory of most wheels."""
SMALLEST_READ = 64 * 1024
LARGEST_READ = 64 * 1024 * 1024
"""A server that must fetch a part itself first takes as long for 64 MB as for one."""
_FRONT = 16 * 1024 * 1024
"""First read of a member that may be enough in part."""
_LOCAL_HEADER = 4096
"""Room for what precedes a member's data: name and extra fields."""
_STEP = 4 * 1024 * 1024


class WheelSource(Protocol):
    """An index that is read."""

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page."""

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return the bytes of `byte_range` (`0-99`, `-500`) and the size of the whole file."""


class RemoteFile(io.RawIOBase):
    """A read-only, seekable view of a file on the web that fetches what is read.

    Reads that follow each other fetch ever larger parts, so that a long read costs few requests
    and a short one few bytes.
    """

    def __init__(self, web: WheelSource, url: str) -> None:
        super().__init__()
        self._web = web
        self._url = url
        self._tail, self.size = web.get_range(url, f"-{TAIL}")
        self._tail_start = self.size - len(self._tail)
        self._position = 0
        self._part = b""
        self._part_start = 0
        self._read_size = SMALLEST_READ

    def readable(self) -> bool:
        """Say that reading works."""
        return True

    def seekable(self) -> bool:
        """Say that seeking works."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` bytes from the start, the position or the end; fetch nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill `buffer` from the position on; return how many bytes, 0 at the end."""
        view = memoryview(buffer)
        chunk = self._bytes_here(len(view))[: len(view)]
        view[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)

    def prefetch(self, start: int, length: int) -> None:
        """Fetch `length` bytes from `start` on with one request; reads there then cost none."""
        last = min(start + length, self.size) - 1
        if start < self._tail_start and last >= start:
            self._part, _ = self._web.get_range(self._url, f"{start}-{last}")
            self._part_start = start
            self._read_size = len(self._part)

    def _bytes_here(self, wanted: int) -> memoryview:
        """Return at least one byte from the position on, unless it is the end."""
        if self._position >= self.size:
            return memoryview(b"")
        if self._position >= self._tail_start:
            return memoryview(self._tail)[self._position - self._tail_start :]
        part_end = self._part_start + len(self._part)
        if not self._part_start <= self._position < part_end:
            follows = self._position == part_end
            self._read_size = min(self._read_size * 4, LARGEST_READ) if follows else SMALLEST_READ
            length = max(self._read_size, min(wanted, LARGEST_READ))
            last = min(self._position + length, self.size) - 1
            self._part, _ = self._web.get_range(self._url, f"{self._position}-{last}")
            self._part_start = self._position
        return memoryview(self._part)[self._position - self._part_start :]


def open_zip(web: WheelSource, url: str) -> tuple[zipfile.ZipFile, int]:
    """Open the zip archive at `url`; return it with the size of the file in bytes."""
    file = RemoteFile(web, url)
    try:
        return zipfile.ZipFile(file), file.size
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise EvidenceError(f"{url}: not a zip archive: {error}") from error


def read_member(archive: zipfile.ZipFile, name: str, size: int | None = None) -> bytearray:
    """Inflate a member, or its first `size` bytes, checking the CRC where it is read to its end."""
    try:
        info = archive.getinfo(name)
        limit = info.file_size if size is None else min(size, info.file_size)
        data = bytearray(limit)
        view = memoryview(data)
        done = 0
        if size is None:
            _prefetch(archive, info, info.compress_size)
        with archive.open(info) as stream:
            while done < limit:
                chunk = stream.read(min(8 * 1024 * 1024, limit - done))
                if not chunk:
                    break
                view[done : done + len(chunk)] = chunk
                done += len(chunk)
            if size is None:
                stream.read(1)
    except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise EvidenceError(f"{archive.filename or 'archive'}: {name}: {error!r}") from error
    if done < limit:
        raise EvidenceError(f"{name}: {done} of {limit} bytes")
    return data


def read_member_until(
    archive: zipfile.ZipFile, name: str, found: Callable[[bytearray, int], int | None]
) -> bytearray:
    """Inflate a member up to where `found(data, start of the newest part)` says, or whole."""
    data = bytearray()
    try:
        info = archive.getinfo(name)
        _prefetch(archive, info, min(info.compress_size, _FRONT))
        with archive.open(info) as stream:
            while chunk := stream.read(_STEP):
                data += chunk
                end = found(data, len(data) - len(chunk))
                if end is not None:
                    del data[end:]
                    break
    except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise EvidenceError(f"{archive.filename or 'archive'}: {name}: {error!r}") from error
    return data


def _prefetch(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> None:
    """Fetch the first `size` compressed bytes of a member with one request."""
    file: object = archive.fp
    if isinstance(file, RemoteFile):
        file.prefetch(info.header_offset, size + _LOCAL_HEADER)
