r"""What a shared library is, by its file name: which part of which CUDA or cuDNN.

In: the rows `library` of `failures.toml`; out: `LibraryName`s. `libcublasLt.so.12`,
`C:\app\cublasLt64_12.dll` and `@rpath/libonnxruntime.1.17.dylib` are all read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple


class LoggedLibrary(NamedTuple):
    """A row: file names of one kind, what they belong to, and the wheel that brings them."""

    regex: re.Pattern[str]
    part: str
    """What they are a part of: `cuda`, `cudnn`, `driver`, `tensorrt`, …"""
    major: str
    """The major of CUDA or cuDNN that they belong to; empty where the name does not tell."""
    distribution: str
    """The wheel that brings them; empty where none does."""
    name: str | None
    """The whole name, where a log may show only the end of it."""


class LibraryName(NamedTuple):
    """A file name that was read."""

    name: str
    part: str = ""
    """Empty: a library of somebody else."""
    major: str = ""
    distribution: str = ""


def reader_of(rows: tuple[LoggedLibrary, ...]) -> Callable[[str], LibraryName]:
    """Return what reads a file name, with or without its folder."""

    @lru_cache(maxsize=1024)
    def read(file: str) -> LibraryName:
        name = re.split(r"[\\/]", file)[-1]
        for row in rows:
            if row.regex.fullmatch(name):
                return LibraryName(row.name or name, row.part, row.major, row.distribution)
        return LibraryName(name)

    return read
