"""Texts that people paste: what files or standard input hold, and the machine they tell."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from ..data_files import load_table
from ..errors import Error
from ..explain.matcher import Search
from ..explain.reading import names_authors, of_one_author, text_of
from ..pasted.machine import ToldMachine, told_machine
from ..pasted.reader import MachineReader

STDIN = "-"
BLOCK = 1 << 20


class TextBegin(NamedTuple):
    """Where one of several texts begins that are read one after the other."""

    file: str
    line: int
    """Its first line, counted through all."""


def place(begins: Sequence[TextBegin], line: int) -> str:
    """Return where a line is, counted through all: `12`; of several files `pip.txt:12`."""
    if len(begins) == 1:
        return str(line)
    begin = [each for each in begins if each.line <= line][-1]
    return f"{begin.file}:{line - begin.line + 1}"


def read_texts(
    files: Sequence[str], machine: MachineReader, search: Search | None = None
) -> tuple[TextBegin, ...]:
    """Read the texts of `files`, one after the other, for the machine and for what went wrong.

    Returns where each begins. Raises Error `log-unreadable`.
    """
    line, begins = 1, []
    for file in files:
        begins.append(TextBegin(file, line))
        text = text_of(_blocks(file))
        whole = isinstance(text, str)
        pieces = [_of_one(text, search)] if isinstance(text, str) else text
        for piece in chain(pieces, ["\n"]):
            machine.feed(piece)
            if search:
                search.feed(piece, joined=whole)
            line += piece.count("\n")
        machine.end_text()
    return tuple(begins)


def _of_one(text: str, search: Search | None) -> str:
    """Return of a thread what the first wrote of whom something went wrong, or who told anything.

    Any other text is returned as it is.
    """
    if not names_authors(text):
        return text
    reader, failed = MachineReader(), Search(search.table) if search else None
    reader.feed(text)
    if failed:
        failed.feed(text, joined=True)
    lines = failed.lines if failed else set()
    return of_one_author(text, lines or {each.line for each in reader.seen})


def _blocks(file: str) -> Iterator[bytes]:
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
