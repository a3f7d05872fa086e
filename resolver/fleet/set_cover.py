"""The smallest split: as few groups as possible, so that each has something that works for all.

Deterministic. A set is a bit mask of the things to be covered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

EXACT = 8
"""Up to so many things every subset is looked at; beyond that they are taken one after another."""


def minimum_set_covers(sets: Sequence[int], goal: int) -> list[tuple[int, ...]]:
    """Return every choice of as few `sets` as cover `goal`, as ascending indices.

    >>> smallest_covers([0b011, 0b110, 0b101], 0b111)
    [(0, 1), (0, 2), (1, 2)]
    """
    level: dict[int, set[tuple[int, ...]]] = {0: {()}}
    while level and goal not in level:
        longer: dict[int, set[tuple[int, ...]]] = {}
        for covered, choices in level.items():
            missing = goal & ~covered
            lowest = missing & -missing
            for at, one in enumerate(sets):
                if one & lowest:
                    longer.setdefault((covered | one) & goal, set()).update(
                        tuple(sorted((*choice, at))) for choice in choices
                    )
        level = longer
    return sorted(level.get(goal, ()))


def maximal_subsets(count: int, works: Callable[[int], bool]) -> list[int]:
    """Return the largest sets of `count` things that work, none within another.

    `works` is asked of a bit mask; what works keeps working with less. Exact up to `EXACT` things;
    of more, each joins the first set with which it works.
    """
    if count > EXACT:
        found: list[int] = []
        for at in range(count):
            home = next((i for i, one in enumerate(found) if works(one | 1 << at)), None)
            if home is None:
                found.append(1 << at)
            else:
                found[home] |= 1 << at
        return found
    by_size = sorted(range(1, 1 << count), key=lambda mask: (-mask.bit_count(), mask))
    kept: list[int] = []
    for mask in by_size:
        if not any(mask & one == mask for one in kept) and works(mask):
            kept.append(mask)
    return kept
