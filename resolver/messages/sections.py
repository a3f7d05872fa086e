"""The layout of text for people: lines under headings."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

T = TypeVar("T")

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
"""The style of rich for each severity."""


LONG_HEAD = 40
"""Columns from which on a head stands for itself, and does not move the texts of the others."""
_NARROWEST = 24
"""Columns of a text beside its head; where there are fewer, it begins below the head."""
_PIECES = re.compile(
    r"\s+|[（《“「]*(?:[!-_a-~]*`[^`\n]*`[!-_a-~]*|[!-~]+|[^\s!-~])[，。：；、！？）》”」]*"
)
"""A word, a command, or a Chinese character, with the marks that stay with it: none that closes
begins a line, and none that opens ends one."""


_MARKER = re.compile(r" *(?:[-+~|]|-->) +(?=\S)")
"""What begins a line: its text goes on below the text, not below the mark."""


class Row(NamedTuple):
    """One line: a head and its text."""

    head: str = ""
    text: str = ""
    style: str = ""
    """A style of rich, or empty."""
    unwrapped: bool = False
    """True for one line, however long: a command to paste."""


class Section(NamedTuple):
    """Lines under a heading, which may be empty."""

    rows: tuple[Row, ...]
    heading: str = ""


def size(count: int) -> str:
    """Return a number of bytes for people: `277 MB`, `2.6 GB` (powers of 1000)."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:  # noqa: PLR2004 - the step of the units
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def join_neighbours(rows: Iterable[tuple[str, T]]) -> list[tuple[list[str], T]]:
    """Return the names of neighbouring rows with an equal value in one list, with that value."""
    groups = groupby(rows, key=itemgetter(1))
    return [([name for name, _ in group], value) for value, group in groups]


def width(text: str) -> int:
    """Return the columns of `text` on a terminal; Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def wrapped(text: str, columns: int) -> list[str]:
    """Return `text` in lines of `columns`; Chinese ones end at any character.

    A word that is longer, as a path, is never cut; spaces that begin the text stay.
    """
    lines = [text[: len(text) - len(text.lstrip())]]
    for piece in _PIECES.findall(text.strip()):
        if width(lines[-1]) + width(piece) > columns and not piece.isspace() and lines[-1].strip():
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


def lines_of(section: Section, columns: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the lines of `section` and their styles, with those below a heading indented.

    They are wrapped in `columns`, but for commands; not at all where it is None.
    """
    for line in wrapped(section.heading, columns) if columns else [section.heading]:
        if line:
            yield line, "bold"
    indent = "  " if section.heading else ""
    heads = (width(row.head) for row in section.rows if row.text)
    column = max([0, *(head for head in heads if head <= LONG_HEAD)])
    for row in section.rows:
        pad = " " * (column - width(row.head)) + "  " if row.head or column else ""
        lead = f"{indent}{row.head}{pad}"
        if columns is None or row.unwrapped or not row.text:
            yield f"{lead}{row.text}".rstrip(), row.style
            continue
        if columns - width(lead) < _NARROWEST:
            yield lead.rstrip(), row.style
            lead = f"{indent}    "
        for part in row.text.split("\n"):
            mark = _MARKER.match(part)
            lead += mark[0] if mark else ""
            for line in wrapped(part[mark.end() if mark else 0 :], columns - width(lead)):
                yield f"{lead}{line}".rstrip(), row.style
                lead = " " * width(lead)


def plain(sections: Sequence[Section], columns: int | None = None) -> str:
    """Return `sections` as text without colour, wrapped in `columns`, or not at all."""
    blocks = ("\n".join(line for line, _ in lines_of(each, columns)) for each in sections)
    return "\n\n".join(blocks)


def milliseconds(value: float | None) -> str:
    """Return a time as people say it: `0.338 ms`, `12.1 ms`, `1250 ms`."""
    if value is None:
        return "?"
    digits = max(0, 2 - len(str(int(value))) + 1) if value >= 1 else 3
    return f"{value:.{digits}f} ms"
