"""Regular expressions that can be looked for in a large log, and what need not be looked at there.

Each has a piece of fixed text, its anchor: `str.find` looks for that, and the expression sees only
what stands around it. A log that is too long to hold says the same again and again, in few
different words: an anchor whose words are not among those of a piece does not stand there, which
saves a third of the time. A program that fails in a loop says the same again, too: what differs in
its numbers alone is looked at so often and no more.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

SHORTEST = 6
"""The bytes of the least fixed text that is quick to look for."""

REACH = 1_000
"""How far from its fixed text a pattern can see."""
MOST_SHAPES = 2_000
"""The most different places of one fixed text that are looked at."""
MOST_ALIKE = 50
"""How many of them may differ in their numbers alone: `.so.11` and `.so.12` do."""
MOST_PLACES = 100_000
"""The most places of one fixed text at all: who says it so often says nothing new."""

BATCH = 256
"""So many lines are taken apart at a time: their words stay in the processor's cache."""

_NUMBERS = b"0123456789abcdef"
"""What numbers, addresses and identifiers are written with."""

_LITERAL = re.compile(r"\\([^A-Za-z0-9])")
_VARYING = re.compile(
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:[?*+]|\{[\d,]*\})?\??"
    r"|(?:\[[^\]]*\]|\\[A-Za-z]|\.)(?:[?*+]|\{[\d,]*\})?\??|.[?*{]|\{[^}]*\}|[.^$+?{}]"
)
_QUOTE = re.compile(
    r"""(\[(?:\\.|[^\]])*\]|\\.|\(\?<[=!][^)]*\))|(?<!\w)['"`](?![?*+{])|['"`](?![\w?*+{])"""
)
_ANY_QUOTE = """['"`]?"""
_PRIVATE = 0xE000
"""Where Unicode has room: an escaped character stands there while its expression is taken apart."""


class Pattern(NamedTuple):
    """A regular expression, and fixed text without which it cannot match."""

    source: str
    anchor: str

    @property
    def regex(self) -> re.Pattern[str]:
        """The expression, compiled when its fixed text was found for the first time."""
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


def pattern(source: str, key: str = "pattern") -> Pattern:
    """Make a pattern; its anchor is the longest text outside of groups, classes and quantifiers.

    Raises ValueError that begins with `key` where it is no expression, or has no fixed text.
    """
    regex(source, key)
    plain = _LITERAL.sub(lambda found: chr(_PRIVATE + ord(found[1])), source)
    fixed = _VARYING.split(plain)
    anchor = "".join(
        chr(ord(char) - _PRIVATE) if ord(char) >= _PRIVATE else char for char in max(fixed, key=len)
    )
    if len(anchor.encode()) < SHORTEST or any("|" in text for text in fixed):
        raise ValueError(f"{key}: fixed text is needed, and alternatives only in a group")
    return Pattern(source=source, anchor=anchor)


def any_quotes(source: str) -> str:
    """Return an expression for texts that may have another quotation mark than it has, or none."""
    return _QUOTE.sub(lambda found: found[1] or _ANY_QUOTE, source)


def regex(source: str, key: str = "pattern") -> re.Pattern[str]:
    """Compile `source`. Raises ValueError that begins with `key`."""
    try:
        return _compiled(source)
    except re.error as error:
        raise ValueError(f"{key}: {error}") from error


class Words:
    """The different words of a text, but for their numbers."""

    def __init__(self, text: str) -> None:
        """Find them."""
        lines = [*set(_without_numbers(text).split(b"\n"))]  # many differ in their numbers alone
        self._words: set[bytes] = set()
        for at in range(0, len(lines), BATCH):
            self._words.update(b"\n".join(lines[at : at + BATCH]).split())
        self._joined = b"\n".join(self._words)

    def may_hold(self, anchor: str) -> bool:
        """Return whether `anchor` can stand in the text: its words do, in any order."""
        wanted = _words_of(anchor)
        return wanted.whole <= self._words and all(part in self._joined for part in wanted.parts)


class _Wanted(NamedTuple):
    whole: frozenset[bytes]
    """Words that have a blank on either side."""
    parts: tuple[bytes, ...]
    """Those at its ends: of a longer word, maybe."""


@cache
def _words_of(anchor: str) -> _Wanted:
    words = _without_numbers(f"|{anchor}|").split()
    first, *others = words
    ends = {first.removeprefix(b"|"), *others[-1:]}
    return _Wanted(frozenset(others[:-1]), tuple(word.removesuffix(b"|") for word in ends))


def _without_numbers(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, _NUMBERS)


class Novelty:
    """What was looked at of a log."""

    def __init__(self) -> None:
        """Begin."""
        self._shapes: dict[tuple[str, int], dict[int, int]] = {}
        self._places: dict[tuple[str, int], int] = {}

    def windows(self, text: str, anchor: str, kind: int) -> list[tuple[int, int]]:
        """Return the new places of `anchor` in `text`, each with what may be seen around it."""
        key = anchor, kind
        places = self._places.get(key, 0)
        shapes = self._shapes.setdefault(key, {})
        windows: list[tuple[int, int]] = []
        at = text.find(anchor)
        while at >= 0 and places < MOST_PLACES and len(shapes) < MOST_SHAPES:
            places += 1
            reach = at + len(anchor) + REACH
            low = text.rfind("\n", max(0, at - REACH), at) + 1 or max(0, at - REACH)
            high = text.find("\n", at, reach)
            high = min(reach, len(text)) if high < 0 else high
            shape = hash(_without_numbers(text[low:high]))
            alike = shapes.get(shape, 0)
            if alike < MOST_ALIKE:
                shapes[shape] = alike + 1
                windows.append((low, high))
            at = text.find(anchor, high)
        self._places[key] = places
        return windows
