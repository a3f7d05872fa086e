"""Work spread over versions, over threads, and over the memory that there is."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def each(
    function: Callable[[_Item], _Result], items: Sequence[_Item], threads: int
) -> list[_Result]:
    """Return the function's results in the items' order, computed by that many threads."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def by_bisection(items: Sequence[_Item], fact: Callable[[_Item], _Result]) -> list[_Result]:
    """Return a fact of each item, asking only where it changes.

    Between two items with equal facts everything is taken to be equal: facts of releases change
    for good. Costs about log2(n) questions for each change.
    """
    facts: dict[int, _Result] = {}

    def ask(index: int) -> _Result:
        if index not in facts:
            facts[index] = fact(items[index])
        return facts[index]

    def fill(low: int, high: int) -> None:
        if high - low < 2:  # noqa: PLR2004
            return
        if ask(low) == ask(high):
            for index in range(low + 1, high):
                facts[index] = facts[low]
            return
        middle = (low + high) // 2
        ask(middle)
        fill(low, middle)
        fill(middle, high)

    if items:
        ask(0)
        ask(len(items) - 1)
        fill(0, len(items) - 1)
    return [facts[index] for index in range(len(items))]


class Gap(NamedTuple):
    """Items that follow each other, of which nothing is known."""

    items: list[int]
    """Their positions."""
    before: int | None
    """The position of the known item before them, or None."""
    after: int | None
    """The position of the known item after them, or None."""


def gaps(known: Sequence[bool]) -> Iterator[Gap]:
    """Yield the runs of positions at which `known` is false."""
    for is_known, run in groupby(range(len(known)), key=known.__getitem__):
        items = list(run)
        if not is_known:
            first, last = items[0], items[-1]
            after = last + 1 if last + 1 < len(known) else None
            yield Gap(items, first - 1 if first else None, after)


class Room:
    """Lets threads in while what they hold together has room; the first always."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def for_bytes(self, count: int) -> Iterator[None]:
        """Wait until `count` more bytes have room, and hold them until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + count <= self._size)
            self._used += count
        try:
            yield
        finally:
            with self._changed:
                self._used -= count
                self._changed.notify_all()
