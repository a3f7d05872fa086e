"""Readings of wheels on the index, each made once and kept in the cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...binaries import fatbin, pe
from ...binaries.library_names import symbols_in
from ...evidence.ranges import (
    TAIL,
    ArchiveMember,
    Tail,
    WheelSource,
    open_zip,
    read_member,
    read_text,
)
from ...evidence.wheels import IndexWheel
from .library import (
    ReadLibrary,
    exports_at_front,
    first_code,
    mentions_in,
    read_library,
    read_native,
    uses_at_front,
)
from .spread import Room

FORMAT = 5
"""Part of every cache key: raised when a reading changes its content."""
_FRONT_SIZES = (512 * 1024, 4 * 1024 * 1024, 32 * 1024 * 1024)
_FRONT = 16 * 1024 * 1024
"""First request for a library that may be enough in part."""
_SYMBOLS_WITHIN = 16 * 1024 * 1024
"""cuFFT's names of symbols follow its first GPU code, after 7 MB; all others' precede it."""
_MEMORY = 2 * 1024 * 1024 * 1024
"""Bytes of libraries that are in memory together; one that is larger is read alone."""
_HEAD = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelOutside:
    """The outside of a wheel."""

    size: int
    """Of the wheel, in bytes."""
    members: dict[str, tuple[int, int]]
    """Path inside to (size in bytes, CRC-32); libraries and metadata files only."""
    metadata: str
    """The METADATA file."""


class ReadingCache:
    """Maps a key to a JSON value on disk; every value is written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return the value under `key`, made now and kept where it is not there or unreadable."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        path = self._folder / digest[:2] / f"{digest}.json"
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            if path.is_file():  # a pipe would be waited for
                kept = json.loads(path.read_bytes())
                if kept["key"] == key:
                    return kept["value"]
        # A round trip, so that a first reading and a later one give the same types.
        text = json.dumps({"key": key, "value": make()}, sort_keys=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(path)
        except OSError as error:
            Path(temporary).unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(self._folder)) from error
        return json.loads(text)["value"]


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
            text = read_text(archive, name)
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
            return read_text(archive, member)

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
                found = read_library(data)
                self._keep_exports(wheel, member, found.pop("exports"))
                front = fatbin.first(data)
                if front is not None:
                    del data[front:]  # that is what `uses` reads: it need not fetch it again
                links = found["links"] + found["delayed"]
                used = uses_at_front(data) or [sorted(links), found["mentions"]]
            self._cached("front", wheel, member, lambda: used)
            return found

        value = self._cached("library", wheel, member, make)
        for key in ("links", "delayed", "mentions", "isa"):
            value[key] = tuple(value[key])
        value["imports"] = {owner: tuple(names) for owner, names in value["imports"].items()}
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
                code = library.read_until(first_code)
                front = library.data if code is None else library.data[:code]
                exports = exports_at_front(front)
                used = uses_at_front(front)
                if used is None:
                    native = read_native(library.read())
                    exports = native.exports
                    used = [
                        sorted(native.links + native.delayed),
                        sorted(mentions_in(library.data)),
                    ]
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
                    code = library.read_until(first_code)
                    front = library.data if code is None else library.data[:code]
                    found[info.filename] = sorted(mentions_in(front))
            return found

        value = self._cached("natives", wheel, "", make)
        return {member: frozenset(texts) for member, texts in value.items()}

    def symbols(self, wheel: IndexWheel, member: str) -> frozenset[str]:
        """Return the names of symbols of CUDA libraries that a library holds: its own and others'.

        Read is all up to its first GPU code, and 16 MB at least.
        """

        def make() -> list[str]:
            self._progress(f"symbols named in {wheel.file}: {member}")
            archive, _ = self._open(wheel)
            with self._room.for_bytes(archive.getinfo(member).file_size):
                library = ArchiveMember(archive, member, _FRONT)
                code = library.read_until(first_code) or 0
                data = library.read(max(len(library.data), _SYMBOLS_WITHIN))
                return sorted(symbols_in(data[: max(code, _SYMBOLS_WITHIN)]))

        return frozenset(self._cached("symbols", wheel, member, make))

    def exports(self, wheel: IndexWheel, member: str) -> frozenset[str]:
        """Return a library's exported symbols, from its first part where that suffices."""

        def make() -> list[str]:
            self._progress(f"symbols of {wheel.file}: {member}")
            archive, _ = self._open(wheel)
            library = ArchiveMember(archive, member, _FRONT_SIZES[0])
            for size in _FRONT_SIZES:
                exports = exports_at_front(library.read(size))
                if exports:
                    return sorted(exports)
            with self._room.for_bytes(library.size):
                return sorted(read_native(library.read()).exports)

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
        return open_zip(self._web.get_range, wheel.url, tail)

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
