"""The layout of text for people: lines under headings."""

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

T = TypeVar("T")

STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
"""The style of rich for each severity."""


LONG_HEAD = 40
"""Columns from which on a head stands for itself, and does not move the texts of the others."""


class Row(NamedTuple):
    """One line: a head and its text."""

    head: str = ""
    text: str = ""
    style: str = ""
    """A style of rich, or empty."""
    whole: bool = False
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


def plain(sections: Sequence[Section]) -> str:
    """Return `sections` as text without colour, with the lines below headings indented."""
    blocks: list[str] = []
    for section in sections:
        indent = "  " if section.heading else ""
        heads = (width(row.head) for row in section.rows if row.text)
        column = max([0, *(head for head in heads if head <= LONG_HEAD)])
        lines = [section.heading] if section.heading else []
        for row in section.rows:
            pad = " " * (column - width(row.head)) + "  " if row.head or column else ""
            lines.append(f"{indent}{row.head}{pad}{row.text}".rstrip())
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def milliseconds(value: float | None) -> str:
    """Return a time as people say it: `0.338 ms`, `12.1 ms`, `1250 ms`."""
    if value is None:
        return "?"
    digits = max(0, 2 - len(str(int(value))) + 1) if value >= 1 else 3
    return f"{value:.{digits}f} ms"
