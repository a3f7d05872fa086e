"""GPU code in shared libraries: their fatbins.

A fatbin is a header (magic 0xBA55ED50, version, header size, size of what follows) and entries.
An entry is a header (kind, header size, payload size, compute capability, flags) and a payload,
PTX text or a cubin, usually compressed; the header never is. NVIDIA does not publish the format:
the meaning of the fields was found by comparing with what `fatbinary` writes and `cuobjdump`
prints for every target from sm_75 to sm_121a/f. `cuobjdump` prints cubins for family targets
(sm_120f) like plain ones; the flags distinguish them.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .native import Content

MAGIC = b"\x50\xed\x55\xba"
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_SMALLEST_ENTRY = 64
_LARGEST_ENTRY = 4096
_FLAG_ARCHITECTURE = 0x10_0000
_FLAG_FAMILY = 0x20_0000
_FLAG_LZ4 = 0x2000
_FLAG_ZSTANDARD = 0x8000
_OLDEST, _NEWEST = 20, 200


class EntryKind(IntEnum):
    """What an entry's payload is."""

    PTX = 1
    CUBIN = 2


@dataclass(frozen=True, slots=True)
class FatbinEntry:
    """One entry of a fatbin."""

    container: int
    """Where its fatbin begins, in bytes from the start of the data."""
    kind: int
    """1 PTX, 2 cubin; other kinds (link-time code) do not run by themselves."""
    target: str
    """Compute capability with its suffix: `9.0`, `9.0a` (only 9.0), `12.0f` (12.0 and later)."""
    offset: int
    """Where the payload begins, in bytes from the start of the data."""
    size: int
    """Length of the payload as stored, in bytes."""
    compression: str
    """`none`, `lz4` or `zstd`."""


def compute_capability(architecture: int, flags: int = 0) -> str:
    """Return `9.0a` for architecture 90 with the flag for architecture-specific code set."""
    suffix = "a" if flags & _FLAG_ARCHITECTURE else "f" if flags & _FLAG_FAMILY else ""
    return f"{architecture // 10}.{architecture % 10}{suffix}"


def entries(data: Content, start: int = 0, stop: int | None = None) -> Iterator[FatbinEntry]:
    """Yield the entries of every fatbin in `data` from `start` to `stop`. Never raises.

    A place that carries the magic number but no sensible header is passed over: payloads are
    compressed, and four given bytes turn up in them by chance.
    """
    stop = len(data) if stop is None else stop
    position = data.find(MAGIC, start, stop)
    while position >= 0:
        end = _container_end(data, position)
        if end is not None:
            yield from _entries(data, position, end)
        position = data.find(MAGIC, position + 1 if end is None else end, stop)


def first(data: Content, start: int = 0) -> int | None:
    """Return where the first fatbin at or after `start` begins, even one that is there in part."""
    position = data.find(MAGIC, start)
    while position >= 0:
        if data[position + 4 : position + 8] == b"\x01\x00\x10\x00":
            return position
        position = data.find(MAGIC, position + 1)
    return None


def count_groups(found: Iterable[FatbinEntry]) -> Counter[str]:
    """Count fatbins by what they hold, as `7.5 8.0 ptx8.0`: one fatbin is one source file."""
    prefixes = {int(EntryKind.CUBIN): "", int(EntryKind.PTX): "ptx"}
    groups: dict[int, set[str]] = {}
    for entry in found:
        if entry.kind in prefixes:
            group = groups.setdefault(entry.container, set())
            group.add(f"{prefixes[entry.kind]}{entry.target}")
    return Counter(" ".join(sorted(group)) for group in groups.values())


def _container_end(data: Content, position: int) -> int | None:
    if position + _CONTAINER.size > len(data):
        return None
    _, version, header_size, size = _CONTAINER.unpack_from(data, position)
    end: int = position + header_size + size
    if version != 1 or header_size != _CONTAINER.size or not size or end > len(data):
        return None
    return end


def _entries(data: Content, container: int, end: int) -> Iterator[FatbinEntry]:
    position = container + _CONTAINER.size
    while position + _SMALLEST_ENTRY <= end:
        kind, _, header_size, padded_size, size, _, _, _, architecture, _, _, flags = (
            _ENTRY.unpack_from(data, position)
        )
        payload = position + header_size
        following = payload + padded_size
        plausible = (
            _SMALLEST_ENTRY <= header_size <= _LARGEST_ENTRY
            and following <= end
            and _OLDEST <= architecture <= _NEWEST
        )
        if not plausible:
            return
        compression = "lz4" if flags & _FLAG_LZ4 else "zstd" if flags & _FLAG_ZSTANDARD else "none"
        yield FatbinEntry(
            container=container,
            kind=kind,
            target=compute_capability(architecture, flags),
            offset=payload,
            size=min(size, padded_size) if compression != "none" and size else padded_size,
            compression=compression,
        )
        position = following
