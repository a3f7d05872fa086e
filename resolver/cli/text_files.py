"""Texts that people paste: the bytes of a file or of standard input, and the machine they tell."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from ..data_files import load_table
from ..errors import Error
from ..pasted.machine import ToldMachine, told_machine
from ..pasted.reader import MachineReader

STDIN = "-"
BLOCK = 1 << 20


def blocks(file: str) -> Iterator[bytes]:
    """Yield the bytes of a text; `-` is standard input. Raises Error `log-unreadable`."""
    try:
        if file == STDIN:
            yield from _read(cast("BufferedIOBase", sys.stdin.buffer))
        else:
            with Path(file).open("rb") as stream:
                yield from _read(stream)
    except OSError as error:
        raise Error("log-unreadable", file=file, cause=error.strerror or error) from error


def _read(stream: BufferedIOBase) -> Iterator[bytes]:
    """Yield what is there, until the end: `read` would ask a terminal for its end twice."""
    return iter(partial(stream.read1, BLOCK), b"")


def machine_of(reader: MachineReader) -> ToldMachine:
    """Return the machine that a text tells; without its Python, it is that of this program."""
    return told_machine(reader, load_table("gpus"), platform.python_version())
