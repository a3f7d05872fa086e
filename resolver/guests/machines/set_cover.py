"""Minimum set covers: the fewest groups that contain everything. A set is a bit mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence

EXACT = 8
"""Up to this many things every subset is tried; more are grouped one after another."""


def minimum_set_covers(sets: Sequence[int], goal: int) -> list[tuple[int, ...]]:
    """Return every choice of as few `sets` as cover `goal`, as ascending indices.

    >>> minimum_set_covers([0b011, 0b110, 0b101], 0b111)
    [(0, 1), (0, 2), (1, 2)]
    """
    level: dict[int, set[tuple[int, ...]]] = {0: {()}}
    while level and goal not in level:
        longer: dict[int, set[tuple[int, ...]]] = {}
        for covered, choices in level.items():
            missing = goal & ~covered
            lowest = missing & -missing
            for at, mask in enumerate(sets):
                if mask & lowest:
                    added = {tuple(sorted((*choice, at))) for choice in choices}
                    longer.setdefault((covered | mask) & goal, set()).update(added)
        level = longer
    return sorted(level.get(goal, ()))


def maximal_subsets(count: int, works: Callable[[int], bool]) -> list[int]:
    """Return the largest sets of `count` things that work, none within another.

    `works` takes a bit mask; every subset of a set that works must work, too. Exact up to `EXACT`
    things; of more, each joins the first set with which it works.
    """
    subsets: list[int] = []
    if count > EXACT:
        for at in range(count):
            home = next((i for i, mask in enumerate(subsets) if works(mask | 1 << at)), None)
            if home is None:
                subsets.append(1 << at)
            else:
                subsets[home] |= 1 << at
        return subsets
    for mask in sorted(range(1, 1 << count), key=lambda mask: -mask.bit_count()):
        if not any(mask & larger == mask for larger in subsets) and works(mask):
            subsets.append(mask)
    return subsets
