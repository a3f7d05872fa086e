"""What is new in a log: what differs from what was looked at in its numbers alone is not.

A log that is too long to hold says the same again and again; a program that fails in a loop does.
"""

from __future__ import annotations

from typing import NamedTuple

REACH = 1_000
"""How far from its fixed text a pattern can see."""
MOST_LINES = 200_000
"""The most lines that are remembered as telling nothing."""
MOST_SHAPES = 2_000
"""The most different places of one fixed text that are looked at."""
MOST_ALIKE = 50
"""How many of them may differ in their numbers alone: `.so.11` and `.so.12` do."""
MOST_PLACES = 100_000
"""The most places of one fixed text at all: who says it so often says nothing new."""

_NUMBERS = dict.fromkeys(map(ord, "0123456789abcdef"))
"""What numbers, addresses and identifiers are written with."""


class Lines(NamedTuple):
    """Some lines of a piece."""

    text: str
    numbers: range | list[int]
    """Their numbers in the piece, from 0."""


class Novelty:
    """What was looked at of a log."""

    def __init__(self) -> None:
        """Begin."""
        self._silent: set[int] = set()
        """Lines that told nothing."""
        self._fresh: set[int] = set()
        """Of the piece that is looked at: lines that are not known to be silent."""
        self._telling: set[int] = set()
        """Of these: lines in which something that is looked for stands."""
        self._shapes: dict[tuple[str, int], dict[int, int]] = {}
        self._places: dict[tuple[str, int], int] = {}

    def lines(self, piece: str) -> Lines:
        """Return the lines of `piece` but for those of which it is known that they tell nothing.

        Called before the piece is looked at; `done` is called after.
        """
        shapes = piece.translate(_NUMBERS).split("\n")
        self._fresh = set(map(hash, shapes)) - self._silent
        if 2 * len(self._fresh) > len(shapes):
            return Lines(piece, range(len(shapes)))
        numbers = [number for number, shape in enumerate(shapes) if hash(shape) in self._fresh]
        lines = piece.split("\n") if numbers else []
        return Lines("\n".join(lines[number] for number in numbers), numbers)

    def done(self) -> None:
        """Remember what told nothing."""
        if len(self._silent) < MOST_LINES:
            self._silent |= self._fresh - self._telling
        self._telling.clear()

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
            shape = hash(text[low:high].translate(_NUMBERS))
            self._telling.add(shape)
            alike = shapes.get(shape, 0)
            if alike < MOST_ALIKE:
                shapes[shape] = alike + 1
                windows.append((low, high))
            at = text.find(anchor, high)
        self._places[key] = places
        return windows
