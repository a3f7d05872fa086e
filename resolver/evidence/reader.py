"""Readings of wheels on the index, each made once and kept in the cache."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..binaries import elf, fatbin, library_names, pe, ptx
from ..binaries.native import BinaryError
from .ranges import TAIL, ArchiveMember, Tail, WheelSource, open_zip, read_member
from .room import Room
from .wheels import IndexWheel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..binaries.native import Native
    from .cache import ReadingCache

FORMAT = 4
"""Part of every cache key: raised when a reading changes its content."""
_FRONT_SIZES = (512 * 1024, 4 * 1024 * 1024, 32 * 1024 * 1024)
_FRONT = 16 * 1024 * 1024
"""First request for a library that may be enough in part."""
_MEMORY = 2 * 1024 * 1024 * 1024
"""Bytes of libraries that are in memory together; one that is larger is read alone."""
_HEAD = 4096
_SONAME = re.compile(r"lib[^/]+[.]so[.0-9]*")
_PTX_READ = 100
"""Pieces of PTX whose version is read; a library has thousands, of one or two versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelOutside:
    """The outside of a wheel."""

    size: int
    """Of the wheel, in bytes."""
    members: dict[str, tuple[int, int]]
    """Path inside to (size in bytes, CRC-32); libraries and metadata files only."""
    metadata: str
    """The METADATA file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadLibrary:
    """The inside of a shared library: what it links, loads, needs, offers, and its GPU code."""

    name: str
    links: tuple[str, ...]
    delayed: tuple[str, ...]
    search: tuple[str, ...]
    imports: dict[str, tuple[str, ...]]
    exports: frozenset[str]
    mentions: tuple[str, ...]
    """CUDA libraries whose name the file holds anywhere, its links and itself included."""
    sass: dict[str, int]
    ptx: dict[str, int]
    bare: dict[str, int]
    groups: dict[str, int]
    """Fatbins by what they hold (`7.5 8.0 ptx8.0`): one fatbin for each source file."""
    isa: tuple[str, ...]
    """PTX ISA versions (`8.7`) of the PTX that could be read."""


class Reader:
    """Reads project pages and wheels of one index."""

    def __init__(
        self, web: WheelSource, cache: ReadingCache, index_url: str, progress: Callable[[str], None]
    ) -> None:
        self._web = web
        self._cache = cache
        self._index_url = index_url.rstrip("/")
        self._progress = progress
        self._pages: dict[str, list[IndexWheel]] = {}
        self._tails: dict[str, Tail] = {}
        self._room = Room(_MEMORY)

    def wheels(self, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page: asked anew in each run, never from the cache."""
        if distribution not in self._pages:
            self._pages[distribution] = self._web.wheels(self._index_url, distribution)
        return self._pages[distribution]

    def contents(self, wheel: IndexWheel) -> WheelOutside:
        """Return size, libraries and METADATA of a wheel: one or two small requests."""

        def make() -> dict[str, Any]:
            archive, size = self._open(wheel)
            members = {
                info.filename: [info.file_size, info.CRC]
                for info in archive.infolist()
                if _worth_listing(info)
            }
            name = next((name for name in members if name.endswith(".dist-info/METADATA")), "")
            text = read_member(archive, name).decode("utf-8", "replace")
            return {"size": size, "members": members, "metadata": text}

        value = self._cached("contents", wheel, "", make)
        members = {name: (size, crc) for name, (size, crc) in value["members"].items()}
        return WheelOutside(size=value["size"], members=members, metadata=value["metadata"])

    def text(self, wheel: IndexWheel, member: str) -> str:
        """Return a small text file in a wheel; empty where the wheel has none of that name."""

        def make() -> str:
            archive, _ = self._open(wheel)
            if member not in archive.namelist():
                return ""
            return read_member(archive, member).decode("utf-8", "replace")

        return str(self._cached("text", wheel, member, make))

    def size(self, wheel: IndexWheel) -> int:
        """Return the size of a wheel in bytes, with one small request."""

        def make() -> int:
            return self._web.get_range(wheel.url, "0-0")[1]

        return int(self._cached("size", wheel, "", make))

    def texts_in(
        self, wheel: IndexWheel, members: Sequence[str], pattern: re.Pattern[bytes]
    ) -> list[str]:
        """Return the distinct texts that match a pattern in the first of the members there is."""

        def make() -> list[str]:
            self._progress(f"searching {wheel.file}")
            archive, _ = self._open(wheel)
            member = next((name for name in members if name in archive.namelist()), None)
            data = read_member(archive, member) if member else b""
            return sorted({match[0].decode("ascii") for match in pattern.finditer(data)})

        key = f"{' '.join(members)} {pattern.pattern!r}"
        return list(self._cached("texts", wheel, key, make))

    def library(self, wheel: IndexWheel, member: str) -> ReadLibrary:
        """Read a library whole: downloads and inflates it, searches it for GPU code and names."""

        def make() -> dict[str, Any]:
            self._progress(f"reading {wheel.file}: {member}")
            archive, _ = self._open(wheel)
            with self._room.for_bytes(archive.getinfo(member).file_size):
                data = read_member(archive, member)
                found = _library(data)
                self._keep_exports(wheel, member, found["exports"])
                front = fatbin.first(data)
                if front is not None:
                    del data[front:]  # that is what `uses` reads: it need not fetch it again
                links = found["links"] + found["delayed"]
                used = _uses_at_front(data) or [sorted(links), found["mentions"]]
            self._cached("front", wheel, member, lambda: used)
            return found

        value = self._cached("library", wheel, member, make)
        for key in ("links", "delayed", "search", "mentions", "isa"):
            value[key] = tuple(value[key])
        value["imports"] = {owner: tuple(names) for owner, names in value["imports"].items()}
        value["exports"] = frozenset(value["exports"])
        return ReadLibrary(**value)

    def uses(self, wheel: IndexWheel, member: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the libraries that a library links, and the CUDA libraries whose names it holds.

        Read from its first part, up to the first GPU code: what it links, and its texts, precede
        that; the GPU code is most of the file.
        """

        def make() -> list[list[str]]:
            self._progress(f"what {wheel.file} uses: {member}")
            archive, _ = self._open(wheel)
            with self._room.for_bytes(archive.getinfo(member).file_size):
                library = ArchiveMember(archive, member, _FRONT)
                code = library.read_until(_first_code)
                front = library.data if code is None else library.data[:code]
                exports = _exports_at_front(front)
                used = _uses_at_front(front)
                if used is None:
                    native = _native(library.read())
                    exports = native.exports
                    used = [sorted(native.links + native.delayed), sorted(_mentions(library.data))]
            if exports:
                self._keep_exports(wheel, member, sorted(exports))
            return used

        links, mentions = self._cached("front", wheel, member, make)
        return frozenset(links), frozenset(mentions)

    def natives(self, wheel: IndexWheel) -> dict[str, frozenset[str]]:
        """Return the CUDA libraries whose names each library in a wheel links or holds, by path.

        Each is read up to its first GPU code, as `uses` does.
        """

        def make() -> dict[str, list[str]]:
            self._progress(f"what {wheel.file} uses")
            archive, _ = self._open(wheel)
            found: dict[str, list[str]] = {}
            for info in archive.infolist():
                if _worth_listing(info) and ".dist-info/" not in info.filename:
                    library = ArchiveMember(archive, info.filename, _FRONT)
                    code = library.read_until(_first_code)
                    front = library.data if code is None else library.data[:code]
                    found[info.filename] = sorted(_mentions(front))
            return found

        value = self._cached("natives", wheel, "", make)
        return {member: frozenset(texts) for member, texts in value.items()}

    def exports(self, wheel: IndexWheel, member: str) -> frozenset[str]:
        """Return a library's exported symbols, from its first part where that suffices."""

        def make() -> list[str]:
            self._progress(f"symbols of {wheel.file}: {member}")
            archive, _ = self._open(wheel)
            library = ArchiveMember(archive, member, _FRONT_SIZES[0])
            for size in _FRONT_SIZES:
                exports = _exports_at_front(library.read(size))
                if exports:
                    return sorted(exports)
            with self._room.for_bytes(library.size):
                return sorted(_native(library.read()).exports)

        return frozenset(self._cached("exports", wheel, member, make))

    def toolset(self, wheel: IndexWheel, member: str) -> str:
        """Return the version of the MSVC build tools that linked a DLL, from its head."""

        def make() -> str:
            archive, _ = self._open(wheel)
            return pe.toolset(read_member(archive, member, _HEAD))

        return str(self._cached("toolset", wheel, member, make))

    def _open(self, wheel: IndexWheel) -> tuple[zipfile.ZipFile, int]:
        """Open a wheel; its end, which names its members, is fetched once."""
        tail = self._tails.get(wheel.url) or self._web.get_range(wheel.url, f"-{TAIL}")
        self._tails[wheel.url] = tail
        return open_zip(self._web, wheel.url, tail)

    def _keep_exports(self, wheel: IndexWheel, member: str, exports: list[str]) -> None:
        self._cached("exports", wheel, member, lambda: exports)

    def _cached(self, what: str, wheel: IndexWheel, member: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        identity = wheel.sha256 or wheel.url
        return self._cache.get(f"{FORMAT} {what} {identity} {wheel.file} {member}", make)


def _worth_listing(info: zipfile.ZipInfo) -> bool:
    name = info.filename
    return not info.is_dir() and (
        ".dist-info/" in name or name.endswith(".dll") or ".so" in name.rpartition("/")[2]
    )


def _first_code(data: bytearray, start: int) -> int | None:
    return fatbin.first(data, max(0, start - 16))


def _native(data: bytes | bytearray) -> Native:
    return pe.read(data) if pe.is_pe(data) else elf.read(data)


def _exports_at_front(data: bytes | bytearray) -> frozenset[str] | None:
    if not pe.is_pe(data):
        return elf.exports_at_front(data)
    try:
        return pe.read(data).exports
    except BinaryError:
        return None


def _links_at_front(data: bytes | bytearray) -> frozenset[str] | None:
    if not pe.is_pe(data):
        strings = elf.strings_at_front(data)
        return strings and frozenset(filter(_SONAME.fullmatch, strings))
    try:
        native = pe.read(data)
    except BinaryError:
        return None
    return frozenset(native.links + native.delayed)


def _uses_at_front(data: bytes | bytearray) -> list[list[str]] | None:
    """Return what `Reader.uses` tells, from what precedes the GPU code; None where too little."""
    links = _links_at_front(data)
    return None if links is None else [sorted(links), sorted(_mentions(data))]


def _mentions(data: bytes | bytearray) -> frozenset[str]:
    return library_names.dll_names_in(data) if pe.is_pe(data) else library_names.sonames_in(data)


def _library(data: bytes | bytearray) -> dict[str, Any]:
    native = _native(data)
    code = fatbin.gpu_code(data)
    texts = (entry for entry in fatbin.entries(data) if entry.kind == fatbin.EntryKind.PTX)
    versions = {
        ptx.version(bytes(data[text.offset : text.offset + min(text.size, 4096)]), text.compression)
        for text in islice(texts, _PTX_READ)
    }
    return {
        "name": native.name,
        "links": native.links,
        "delayed": native.delayed,
        "search": native.search,
        "imports": native.imports,
        "exports": sorted(native.exports),
        "mentions": sorted(_mentions(data)),
        "sass": code.sass,
        "ptx": code.ptx,
        "bare": code.bare,
        "groups": code.groups,
        "isa": sorted(versions - {""}),
    }
