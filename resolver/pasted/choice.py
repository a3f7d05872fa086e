"""What is taken of all that the lines of a text tell of one fact.

What a program printed counts before what a person wrote, and that before what a path shows. Of two
printed answers the first is taken; of two that people wrote neither is. What stands in a quotation
counts where the text tells nothing else of that fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .reader import PRINTED, Seen


class Told(NamedTuple):
    """A fact that the text tells, and its line."""

    fact: str
    value: str
    line: int


class Contradiction(NamedTuple):
    """A fact of which the text tells two things."""

    fact: str
    values: tuple[str, ...]
    lines: tuple[int, ...]
    taken: bool
    """True where the first is taken, false where the fact is left out."""
    package: str | None = None
    """The package, where the fact is one's version."""


class Choice:
    """Chooses, and keeps what was told and what contradicts it."""

    def __init__(self, seen: Sequence[Seen], table: Mapping[str, Any]) -> None:
        self.table = table
        self.told: list[Told] = []
        self.contradictions: list[Contradiction] = []
        self.by_fact: dict[str, list[Seen]] = defaultdict(list)
        for each in seen:
            self.by_fact[each.fact].append(each)
        for fact, its in self.by_fact.items():
            self.by_fact[fact] = [each for each in its if not each.quoted] or its

    def best(self, fact: str) -> list[Seen]:
        """Return what is surest of a fact, in the order of the text."""
        seen = self.by_fact[fact]
        top = max((each.weight for each in seen), default=0)
        return [each for each in seen if each.weight == top]

    def one(
        self, fact: str, seen: Sequence[Seen], keys: Sequence[str], package: str | None = None
    ) -> Seen | None:
        """Return the one that is taken: `keys` are equal where two say the same."""
        if not seen:
            return None
        first: dict[str, Seen] = {}
        for key, each in zip(keys, seen, strict=True):
            first.setdefault(key, each)
        if len(first) == 1:
            return seen[0]
        several = sorted(first.values(), key=lambda each: each.line)[:3]
        taken = seen[0].weight == PRINTED
        values = tuple(each.value for each in several)
        lines = tuple(each.line for each in several)
        self.contradictions.append(Contradiction(fact, values, lines, taken, package))
        return seen[0] if taken else None

    def tell(self, fact: str, value: str, line: int) -> None:
        """Keep a fact that is taken, and its line."""
        self.told.append(Told(fact, value, line))
