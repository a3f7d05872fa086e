"""Windows DLLs (PE32+): imported libraries and symbols, delay-loaded ones, exports."""

from __future__ import annotations

import struct
from typing import NamedTuple

from .native import BinaryError, Content, Native

_MACHINES = (0x8664, 0xAA64)
"""AMD64 and ARM64: https://learn.microsoft.com/windows/win32/debug/pe-format."""
_PE32_PLUS = 0x20B
_EXPORTS, _IMPORTS, _DELAYED = 0, 1, 13
_MOST = 200_000
_BY_ORDINAL = 1 << 63


class _Section(NamedTuple):
    name: str
    address: int
    size: int
    offset: int


class _Image:
    """A DLL's bytes, addressed by relative virtual address."""

    def __init__(self, data: Content) -> None:
        self.data = data
        (header,) = struct.unpack_from("<I", data, 60)
        signature, machine, sections = struct.unpack_from("<4sHH", data, header)
        (optional_size,) = struct.unpack_from("<H", data, header + 20)
        (magic,) = struct.unpack_from("<H", data, header + 24)
        if signature != b"PE\0\0" or machine not in _MACHINES or magic != _PE32_PLUS:
            raise BinaryError("not a 64-bit DLL")
        (count,) = struct.unpack_from("<I", data, header + 24 + 108)
        self.directories = [
            struct.unpack_from("<II", data, header + 24 + 112 + 8 * index)
            for index in range(min(count, 16))
        ]
        first = header + 24 + optional_size
        self.sections = []
        for index in range(sections):
            label, virtual_size, address, size, offset = struct.unpack_from(
                "<8sIIII", data, first + 40 * index
            )
            name = label.rstrip(b"\0").decode("latin-1")
            self.sections.append(_Section(name, address, min(size, virtual_size or size), offset))

    def offset(self, address: int) -> int:
        for section in self.sections:
            if section.address <= address < section.address + section.size:
                return section.offset + address - section.address
        raise IndexError("an address outside the sections")

    def directory(self, index: int) -> int:
        """Return the address of a data directory, 0 where the DLL has none."""
        return self.directories[index][0] if index < len(self.directories) else 0

    def string(self, address: int) -> str:
        start = self.offset(address)
        end = self.data.find(b"\0", start, start + 65536)
        if end < 0:
            raise IndexError("a string outside the file")
        return bytes(self.data[start:end]).decode("ascii")

    def integer(self, address: int, size: int) -> int:
        start = self.offset(address)
        return int.from_bytes(self.data[start : start + size], "little")


def find_section(data: Content, name: str) -> slice | None:
    """Return where the section `name` (of at most eight characters) of a DLL lies, or None."""
    try:
        sections = _Image(data).sections
    except (struct.error, BinaryError):
        return None
    rows = (row for row in sections if row.name == name)
    return next((slice(row.offset, min(row.offset + row.size, len(data))) for row in rows), None)


def toolset(data: Content) -> str:
    """Return the version of the linker (`14.40`), which is that of the compiler beside it.

    The first 4 KiB of the file are enough. Raises `BinaryError` where it is no DLL.
    """
    try:
        (header,) = struct.unpack_from("<I", data, 60)
        signature, major, minor = struct.unpack_from("<4s22xBB", data, header)
    except struct.error as error:
        raise BinaryError(f"a damaged DLL: {error}") from error
    if not is_pe(data) or signature != b"PE\0\0":
        raise BinaryError("not a DLL")
    return f"{major}.{minor}"


def is_pe(data: Content) -> bool:
    """Say whether `data` begins like a DLL."""
    return bytes(data[:2]) == b"MZ"


def read(data: Content) -> Native:
    """Return the linking facts of a DLL; `BinaryError` where it is none.

    The first part of a file is enough as long as it holds the import and export directories.
    """
    if not is_pe(data):
        raise BinaryError("not a DLL")
    try:
        image = _Image(data)
        imports = _imports(image)
        delayed = _delayed(image)
        name, exports = _exports(image)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise BinaryError(f"a damaged DLL: {error}") from error
    merged = dict(imports)
    for library, names in delayed.items():
        merged[library] = tuple(sorted({*merged.get(library, ()), *names}))
    return Native(
        name=name,
        links=tuple(imports),
        delayed=tuple(delayed),
        imports=dict(sorted(merged.items())),
        exports=exports,
    )


def _imports(image: _Image) -> dict[str, tuple[str, ...]]:
    position = image.directory(_IMPORTS)
    found: dict[str, tuple[str, ...]] = {}
    for _ in range(_MOST if position else 0):
        lookup = image.integer(position, 4)
        name = image.integer(position + 12, 4)
        bound = image.integer(position + 16, 4)
        if not name:
            break
        found[image.string(name)] = _thunks(image, lookup or bound)
        position += 20
    return found


def _delayed(image: _Image) -> dict[str, tuple[str, ...]]:
    position = image.directory(_DELAYED)
    found: dict[str, tuple[str, ...]] = {}
    for _ in range(_MOST if position else 0):
        name = image.integer(position + 4, 4)
        if not name:
            break
        found[image.string(name)] = _thunks(image, image.integer(position + 16, 4))
        position += 32
    return found


def _thunks(image: _Image, position: int) -> tuple[str, ...]:
    names = []
    for _ in range(_MOST):
        value = image.integer(position, 8)
        if not value:
            break
        names.append(
            f"#{value & 0xFFFF}" if value & _BY_ORDINAL else image.string((value & 0x7FFFFFFF) + 2)
        )
        position += 8
    return tuple(sorted(names))


def _exports(image: _Image) -> tuple[str, frozenset[str]]:
    position = image.directory(_EXPORTS)
    if not position:
        return "", frozenset()
    count = min(image.integer(position + 24, 4), _MOST)
    names = image.integer(position + 32, 4)
    return image.string(image.integer(position + 12, 4)), frozenset(
        image.string(image.integer(names + 4 * index, 4)) for index in range(count)
    )
