"""What the bytes of a shared library say, or its first bytes, up to its GPU code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...binaries import elf, fatbin, library_names, pe, ptx
from ...binaries.native import BinaryError, Native

_SONAME = re.compile(r"lib[^/]+[.]so[.0-9]*")
_PTX_READ = 100
"""Pieces of PTX whose version is read; a library has thousands, of one or two versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadLibrary:
    """The inside of a shared library: what it links, loads, takes, and its GPU code."""

    links: tuple[str, ...]
    delayed: tuple[str, ...]
    imports: dict[str, tuple[str, ...]]
    mentions: tuple[str, ...]
    """CUDA libraries whose name the file holds anywhere, its links and itself included."""
    sass: dict[str, int]
    groups: dict[str, int]
    """Fatbins by what they hold (`7.5 8.0 ptx8.0`): one fatbin for each source file."""
    isa: tuple[str, ...]
    """PTX ISA versions (`8.7`) of the PTX that could be read."""


def first_code(data: bytearray, start: int) -> int | None:
    """Return where the first GPU code lies in what has come; what is before `start` was seen."""
    return fatbin.first(data, max(0, start - 16))


def read_native(data: bytes | bytearray) -> Native:
    """Return what a whole ELF file or DLL links, imports and exports. Raises BinaryError."""
    return pe.read(data) if pe.is_pe(data) else elf.read(data)


def exports_at_front(data: bytes | bytearray) -> frozenset[str] | None:
    """Return the symbols that a library exports, from its first bytes; None where too little."""
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


def uses_at_front(data: bytes | bytearray) -> list[list[str]] | None:
    """Return what `Reader.uses` returns, from what precedes the GPU code; None where too little."""
    links = _links_at_front(data)
    return None if links is None else [sorted(links), sorted(mentions_in(data))]


def mentions_in(data: bytes | bytearray) -> frozenset[str]:
    """Return the CUDA libraries whose names the bytes hold."""
    return library_names.dll_names_in(data) if pe.is_pe(data) else library_names.sonames_in(data)


def read_library(data: bytes | bytearray) -> dict[str, Any]:
    """Return the fields of ReadLibrary, as JSON has them, and `exports`. Raises BinaryError."""
    native = read_native(data)
    code = list(fatbin.entries(data))
    texts = (entry for entry in code if entry.kind == fatbin.EntryKind.PTX)
    versions = {
        ptx.version(bytes(data[text.offset : text.offset + min(text.size, 4096)]), text.compression)
        for text in islice(texts, _PTX_READ)
    }
    return {
        "links": native.links,
        "delayed": native.delayed,
        "imports": native.imports,
        "exports": sorted(native.exports),
        "mentions": sorted(mentions_in(data)),
        "sass": Counter(one.target for one in code if one.kind == fatbin.EntryKind.CUBIN),
        "groups": fatbin.count_groups(code),
        "isa": sorted(versions - {""}),
    }
