"""Files on an index, read in parts with range requests."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .wheels import EvidenceError, IndexWheel

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


TAIL = 64 * 1024
"""First read, from the end: holds the central directory of most wheels."""
SMALLEST_READ = 64 * 1024
LARGEST_READ = 64 * 1024 * 1024
"""A server that must fetch a part itself first takes as long for 64 MB as for one."""
_LOCAL_HEADER = 4096
"""Room for what precedes a member's data: name and extra fields."""
_STEP = 4 * 1024 * 1024
LARGEST_LIBRARY = 4 * 1024 * 1024 * 1024
"""The most bytes of a member that is read; the largest library in a wheel has about 2 GB."""
LARGEST_TEXT = 64 * 1024 * 1024
_DAMAGED = (
    *(KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, OSError, zlib.error),
    MemoryError,
)
GetRange = Callable[[str, str], tuple[bytes, int]]
"""Returns the bytes of a range (`0-99`, `-500`) of the file at an address, and the file's size."""
Tail = tuple[bytes, int]
"""The last bytes of a file, and its size in bytes."""


class WheelSource(Protocol):
    """An index that is read."""

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page."""

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return the bytes of `byte_range` (`0-99`, `-500`) and the size of the whole file."""


class RemoteFile(io.RawIOBase):
    """A read-only, seekable view of a file on the web that fetches what is read.

    Reads that follow each other fetch ever larger parts, so that a long read costs few requests
    and a short one few bytes; none goes beyond the bytes that `expect` named last.
    """

    def __init__(self, get_range: GetRange, url: str, tail: Tail | None = None) -> None:
        """View the file at `url`; its `tail`, where an earlier view has fetched that."""
        super().__init__()
        self._get_range = get_range
        self._url = url
        self._tail, self.size = tail or get_range(url, f"-{TAIL}")
        self._tail_start = self.size - len(self._tail)
        self._position = 0
        self._part = b""
        self._part_start = 0
        self._read_size = SMALLEST_READ
        self._stop = 0

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
        filled = 0
        while chunk := self._bytes_here(len(view) - filled)[: len(view) - filled]:
            view[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
            self._position += len(chunk)
        return filled

    def expect(self, start: int, stop: int, first: int) -> None:
        """Prepare for a read from `start` up to `stop`: the first request is for `first` bytes."""
        self._stop = stop
        if start < self._tail_start:
            self._fetch(start, first)
            self._read_size = len(self._part)

    def _bytes_here(self, wanted: int) -> memoryview:
        """Return at least one byte from the position on, unless it is the end or none is wanted."""
        if self._position >= self.size or not wanted:
            return memoryview(b"")
        if self._position >= self._tail_start:
            return memoryview(self._tail)[self._position - self._tail_start :]
        part_end = self._part_start + len(self._part)
        if not self._part_start <= self._position < part_end:
            follows = self._position == part_end
            self._read_size = min(self._read_size * 4, LARGEST_READ) if follows else SMALLEST_READ
            self._fetch(self._position, max(self._read_size, min(wanted, LARGEST_READ)))
        return memoryview(self._part)[self._position - self._part_start :]

    def _fetch(self, start: int, length: int) -> None:
        stop = self._stop if start < self._stop else self.size
        last = min(start + length, stop, self._tail_start) - 1
        self._part, _ = self._get_range(self._url, f"{start}-{last}")
        self._part_start = start


def open_zip(
    get_range: GetRange, url: str, tail: Tail | None = None
) -> tuple[zipfile.ZipFile, int]:
    """Open the zip archive at `url`; return it with the size of the file in bytes."""
    file = RemoteFile(get_range, url, tail)
    try:
        return zipfile.ZipFile(file), file.size
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise EvidenceError(f"{url}: not a zip archive: {error}") from error


class ArchiveMember:
    """A member of an archive, inflated from its start as far as somebody asks, and once only."""

    def __init__(
        self, archive: zipfile.ZipFile, name: str, first: int = LARGEST_READ, *, text: bool = False
    ) -> None:
        """Open it; the first request fetches up to `first` compressed bytes of it.

        Raises EvidenceError also where it has more bytes than a library can, or a `text`.
        """
        self._place = f"{archive.filename or 'archive'}: {name}"
        self.data = bytearray()
        try:
            info = archive.getinfo(name)
            self.size = info.file_size
            if self.size > (LARGEST_TEXT if text else LARGEST_LIBRARY):
                raise EvidenceError(f"{self._place}: {self.size} bytes are too many")
            file: object = archive.fp
            if isinstance(file, RemoteFile):
                begins = [one.header_offset for one in archive.infolist()]
                after = [begin for begin in begins if begin > info.header_offset]
                stop = min(after, default=archive.start_dir)
                length = min(info.compress_size, first) + _LOCAL_HEADER
                file.expect(info.header_offset, stop, length)
            self._stream = archive.open(info)
        except _DAMAGED as error:
            raise EvidenceError(f"{self._place}: {error!r}") from error

    def read(self, size: int | None = None) -> bytearray:
        """Return its first `size` bytes, or all; where it is read to its end its CRC is checked."""
        wanted = self.size if size is None else min(size, self.size)
        while len(self.data) < wanted:
            self._more(min(_STEP, wanted - len(self.data)))
        if len(self.data) >= self.size:
            self._more(1)
        return self.data

    def read_until(self, found: Callable[[bytearray, int], int | None]) -> int | None:
        """Read on until `found(data, start of the newest part)` names a place, and return that."""
        while len(self.data) < self.size:
            start = len(self.data)
            self._more(min(_STEP, self.size - start))
            place = found(self.data, start)
            if place is not None:
                return place
        return None

    def _more(self, length: int) -> None:
        try:
            chunk = self._stream.read(length)
            self.data += chunk
        except _DAMAGED as error:
            raise EvidenceError(f"{self._place}: {error!r}") from error
        if not chunk and len(self.data) < self.size:
            raise EvidenceError(f"{self._place}: {len(self.data)} of {self.size} bytes")


def read_member(archive: zipfile.ZipFile, name: str, size: int | None = None) -> bytearray:
    """Inflate a member, or its first `size` bytes, checking the CRC where it is read to its end."""
    return ArchiveMember(archive, name, LARGEST_READ if size is None else size).read(size)


def read_text(archive: zipfile.ZipFile, name: str) -> str:
    """Return a member that is a text; what is no UTF-8 in it is replaced. Raises EvidenceError."""
    return ArchiveMember(archive, name, text=True).read().decode("utf-8", "replace")
