"""64-bit little-endian ELF shared libraries: links, search paths, symbols.

Reads through the section headers, which whole libraries have; `exports_at_front` does with the
first part of a file, so that a library of 700 MB can be asked for its symbols cheaply.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from .native import BinaryError, Content, Native

_DYNSYM, _DYNAMIC, _VERNEED, _VERSYM = 11, 6, 0x6FFFFFFE, 0x6FFFFFFF
_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 14, 15, 29
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_VERNEED_ENTRY = struct.Struct("<HHIII")
_VERNAUX_ENTRY = struct.Struct("<IHHII")
_HIDDEN = 0x8000
_BINDINGS = frozenset({0, 1, 2, 10})
_UNDEFINED, _LOCAL = 0, 0
_FRONT_SEARCH = 0x4000
_LAST_TYPE, _HIDDEN_TO, _STEPS_BACK = 10, 3, 8
_LEAST_OWN = 4
"""At most one symbol in so many has a name that is the end of another name."""
_TEXT = re.compile(rb"[ -~]+")
_NAME = re.compile(rb"[A-Za-z_.$][A-Za-z0-9_.$@]*")
_MOST_SYMBOLS = 1_000_000


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def is_elf(data: Content) -> bool:
    """Say whether `data` begins like a 64-bit little-endian ELF file."""
    return bytes(data[:6]) == b"\x7fELF\x02\x01"


def read(data: Content) -> Native:
    """Return the linking facts of a whole ELF file; `BinaryError` where it has none."""
    if not is_elf(data):
        raise BinaryError("not a 64-bit little-endian ELF file")
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise BinaryError(f"a damaged ELF file: {error}") from error


def _read(data: Content) -> Native:
    sections = _sections(data)
    by_kind = {section.kind: section for section in sections}
    if _DYNAMIC not in by_kind:
        raise BinaryError("no dynamic section")
    dynamic = by_kind[_DYNAMIC]
    strings = sections[dynamic.link].offset
    tags: dict[int, list[str]] = {}
    for position in range(dynamic.offset, dynamic.offset + dynamic.size - 15, 16):
        tag, value = struct.unpack_from("<qQ", data, position)
        if tag == 0:
            break
        if tag in {_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH}:
            tags.setdefault(tag, []).append(_string(data, strings + value))
    imports, exports = _symbols(data, by_kind, sections)
    search = tags.get(_DT_RPATH, []) + tags.get(_DT_RUNPATH, [])
    return Native(
        name=tags.get(_DT_SONAME, [""])[0],
        links=tuple(tags.get(_DT_NEEDED, ())),
        search=tuple(part for entry in search for part in entry.split(":") if part),
        imports=imports,
        exports=exports,
    )


def _sections(data: Content) -> list[_Section]:
    (offset,) = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    if entry_size < _SECTION.size or not count or offset + count * entry_size > len(data):
        raise BinaryError("an ELF file without its section headers")
    sections = []
    for index in range(count):
        _, kind, _, _, start, size, link, _, _, _ = _SECTION.unpack_from(
            data, offset + index * entry_size
        )
        sections.append(_Section(kind, start, min(size, len(data)), link))
    return sections


def _symbols(
    data: Content, by_kind: dict[int, _Section], sections: list[_Section]
) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    table = by_kind.get(_DYNSYM)
    if table is None:
        return {}, frozenset()
    strings = sections[table.link].offset
    owners = _version_owners(data, by_kind, strings)
    versions = by_kind.get(_VERSYM)
    imports: dict[str, set[str]] = {}
    exports = set()
    for index in range(1, min(table.size // _SYMBOL.size, _MOST_SYMBOLS)):
        name_at, info, _, section, _, _ = _SYMBOL.unpack_from(
            data, table.offset + index * _SYMBOL.size
        )
        if not name_at or info >> 4 == _LOCAL:
            continue
        name = _string(data, strings + name_at)
        if section != _UNDEFINED:
            exports.add(name)
            continue
        owner = ""
        if versions is not None:
            (version,) = struct.unpack_from("<H", data, versions.offset + 2 * index)
            owner = owners.get(version & ~_HIDDEN, "")
        imports.setdefault(owner, set()).add(name)
    return {owner: tuple(sorted(names)) for owner, names in sorted(imports.items())}, frozenset(
        exports
    )


def _version_owners(data: Content, by_kind: dict[int, _Section], strings: int) -> dict[int, str]:
    """Return for each symbol version the library it must come from."""
    owners: dict[int, str] = {}
    section = by_kind.get(_VERNEED)
    position = section.offset if section else 0
    for _ in range(1024 if section else 0):
        _, count, file_at, first, following = _VERNEED_ENTRY.unpack_from(data, position)
        library = _string(data, strings + file_at)
        auxiliary = position + first
        for _ in range(min(count, 1024)):
            _, _, version, _, step = _VERNAUX_ENTRY.unpack_from(data, auxiliary)
            owners[version] = library
            auxiliary += step
        if not following:
            break
        position += following
    return owners


def find_section(data: Content, name: str) -> slice | None:
    """Return where the section `name` (`.rodata`) of a whole ELF file lies, or None."""
    try:
        sections = _sections(data)
        (offset, size, index) = struct.unpack_from("<Q10xH2xH", data, 40)
        names = sections[index]
        for at, section in enumerate(sections):
            (name_at,) = struct.unpack_from("<I", data, offset + at * size)
            if _string(data, names.offset + name_at) == name:
                return slice(section.offset, min(section.offset + section.size, len(data)))
    except (struct.error, IndexError, UnicodeDecodeError, BinaryError):
        pass
    return None


def exports_at_front(data: Content) -> frozenset[str] | None:
    """Return the exported symbols from the first part of an ELF file, or None.

    The symbol and string tables lie side by side near the start in all that NVIDIA ships, while
    what points at them lies at the end. The tables are recognised by shape: a null symbol, then
    valid symbols up to the string table, in which nearly each symbol's name follows a NUL byte (a
    few are the end of another name). None means that no such place was found or that `data` ends
    too early.
    """
    _, symbols = _front(data)
    return frozenset(name for name, exported in symbols if exported) if symbols else None


def strings_at_front(data: Content) -> frozenset[str] | None:
    """Return the dynamic strings from the first part of an ELF file, or None, in the same way.

    Among them are the names of linked libraries, of the file itself, and of all symbols.
    """
    start, symbols = _front(data)
    if not symbols:
        return None
    strings: set[str] = set()
    position = start + 1
    while True:
        end = data.find(b"\0", position, position + 65536)
        if end <= position or not _TEXT.fullmatch(data, position, end):
            return frozenset(strings)
        strings.add(bytes(data[position:end]).decode("ascii"))
        position = end + 1


def _front(data: Content) -> tuple[int, list[tuple[str, bool]]]:
    """Return where the string table begins and the symbols; the likeliest place is the longest."""
    best: tuple[int, list[tuple[str, bool]]] = (0, [])
    for start in range(64, min(len(data), _FRONT_SEARCH), 8):
        if any(data[start : start + _SYMBOL.size]) or not any(data[start + 24 : start + 48]):
            continue
        found = _front_table(data, start)
        if len(found[1]) > len(best[1]):
            best = found
    return best


def _front_table(data: Content, start: int) -> tuple[int, list[tuple[str, bool]]]:
    """Return the string table and (name, whether exported) of the symbols of a table at `start`.

    The start of the string table may itself read like symbols: a few steps back are tried too.
    """
    symbols: list[tuple[int, bool]] = []
    position = start + _SYMBOL.size
    while position + _SYMBOL.size <= len(data):
        name_at, info, other, section, _, _ = _SYMBOL.unpack_from(data, position)
        if (
            not name_at
            or info >> 4 not in _BINDINGS
            or info & 15 > _LAST_TYPE
            or other > _HIDDEN_TO
        ):
            break
        symbols.append((name_at, section != _UNDEFINED and info >> 4 != _LOCAL))
        position += _SYMBOL.size
    for back in range(min(_STEPS_BACK, len(symbols))):
        strings = position - back * _SYMBOL.size
        names = _front_names(data, strings, symbols[: len(symbols) - back])
        if names:
            return strings, names
    return 0, []


def _front_names(
    data: Content, strings: int, symbols: list[tuple[int, bool]]
) -> list[tuple[str, bool]]:
    """Return the symbols' names if a string table begins at `strings`, nothing otherwise."""
    if strings >= len(data) or data[strings] != 0:
        return []
    names = []
    shared = 0
    for name_at, exported in symbols:
        start = strings + name_at
        end = data.find(b"\0", start, start + 65536)
        if end < 0 or not _NAME.fullmatch(data, start, end):
            return []
        shared += data[start - 1] != 0
        if shared * _LEAST_OWN > len(symbols):
            return []
        names.append((bytes(data[start:end]).decode("ascii"), exported))
    return names


def _string(data: Content, start: int) -> str:
    end = data.find(b"\0", start, start + 65536)
    if start >= len(data) or end < 0:
        raise IndexError("a string outside the file")
    return bytes(data[start:end]).decode("utf-8")
