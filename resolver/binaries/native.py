"""What a shared library says about itself, the same for ELF files and Windows DLLs."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field

Content = bytes | bytearray | mmap.mmap
"""The bytes of a library, or of a part of it."""


class BinaryError(ValueError):
    """The bytes are not the library that they claim to be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """The linking facts of one ELF file or DLL."""

    name: str
    """Its own name: SONAME, or the name in the export directory; empty where it has none."""
    links: tuple[str, ...]
    """Libraries the loader brings with it: DT_NEEDED, or the import directory. File order."""
    delayed: tuple[str, ...] = ()
    """Libraries a DLL loads on first use: the delay-load directory."""
    search: tuple[str, ...] = ()
    """RPATH and RUNPATH entries."""
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Symbols taken from elsewhere, by library; under the empty name where the file does not say
    which library (ELF symbols without a version). Sorted."""
    exports: frozenset[str] = frozenset()
    """Symbols it offers to others."""
