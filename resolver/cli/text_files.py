"""Texts that people pass: what files or standard input hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from ..errors import Error
from ..log_lines.matcher import Search
from ..log_lines.reading import decoded, text_of
from . import alive

STDIN = "-"
BLOCK = 1 << 20
MOST = 8_000_000
"""How many characters are read of outputs: a list of packages has far fewer."""


class TextBegin(NamedTuple):
    """Where one of several texts begins that are read one after the other."""

    file: str
    line: int
    """Its first line, counted through all."""


class ReadTexts(NamedTuple):
    """What was read."""

    begins: tuple[TextBegin, ...]
    text: str
    """All that is short enough to be held."""


def place(begins: Sequence[TextBegin], line: int) -> str:
    """Return where a line is, counted through all: `pip.txt:12`."""
    begin = [each for each in begins if each.line <= line][-1]
    file = "stdin" if begin.file == STDIN else begin.file
    return f"{file}:{line - begin.line + 1}"


def read_texts(files: Sequence[str], search: Search) -> ReadTexts:
    """Read the texts of `files`, one after the other. Raises Error `log-unreadable`."""
    line, begins, short = 1, [], []
    for file in files:
        begins.append(TextBegin(file, line))
        text = text_of(_blocks(file))
        whole = isinstance(text, str)
        pieces = [text] if isinstance(text, str) else text
        short += [text] if isinstance(text, str) else []
        for piece in chain(pieces, ["\n"]):
            search.feed(piece, joined=whole)
            line += piece.count("\n")
    return ReadTexts(tuple(begins), "\n".join(short))


def read_text(file: str) -> str:
    """Return up to `MOST` characters of a file, as they are. Raises Error `log-unreadable`."""
    parts: list[str] = []
    for part in decoded(_blocks(file)):
        parts.append(part)
        if sum(map(len, parts)) > MOST:
            break
    return "".join(parts)[:MOST]


def _blocks(file: str) -> Iterator[bytes]:
    """Yield the bytes of a text; `-` is standard input. Raises Error `log-unreadable`."""
    try:
        if file == STDIN:
            stream = cast("BufferedIOBase", sys.stdin.buffer)
            while block := _wait_for(stream):
                yield block
        else:
            with Path(file).open("rb") as stream:
                yield from _read(stream)
    except OSError as error:
        raise Error("log-unreadable", file=file, cause=error.strerror or error) from error


def _wait_for(stream: BufferedIOBase) -> bytes:
    """Return what comes next: who writes it may take any time."""
    with alive.paused():
        return stream.read1(BLOCK)


def _read(stream: BufferedIOBase) -> Iterator[bytes]:
    """Yield what is there, until the end: `read` would ask a terminal for its end twice."""
    return iter(partial(stream.read1, BLOCK), b"")
