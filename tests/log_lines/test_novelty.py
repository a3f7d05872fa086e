"""What is new in a log: a long one is read once, however often it says the same."""

from __future__ import annotations

import itertools
import string

from ortgpu_fix.log_lines.patterns import (
    MOST_ALIKE,
    MOST_PLACES,
    MOST_SHAPES,
    Novelty,
)


def words(count: int) -> list[str]:
    """Return so many words without a digit, and without a letter of a hexadecimal number."""
    letters = [letter for letter in string.ascii_lowercase if letter not in "abcdef"]
    return ["".join(each) for each in itertools.islice(itertools.product(letters, repeat=3), count)]


def test_what_differs_in_numbers_alone_is_looked_at_some_times() -> None:
    seen = Novelty()
    text = "\n".join(f"failed: libx.so.{number}" for number in range(3 * MOST_ALIKE))

    assert len(seen.windows(text, "failed", 0)) == MOST_ALIKE
    assert seen.windows("failed: libx.so.9999", "failed", 0) == []
    assert len(seen.windows("failed: libx.so.9999", "failed", 1)) == 1
    assert len(seen.windows("failed: libx.so.9999", "libx", 0)) == 1
    assert len(seen.windows("failed: liby.so.9999", "failed", 0)) == 1


def test_of_one_text_so_many_shapes_and_places_are_looked_at() -> None:
    shapes = "\n".join(f"failed: {word}" for word in words(MOST_SHAPES + 5))
    assert len(Novelty().windows(shapes, "failed", 0)) == MOST_SHAPES

    seen = Novelty()
    seen.windows("failed\n" * (MOST_PLACES - 1), "failed", 0)
    assert len(seen.windows("failed: new\nfailed: newer", "failed", 0)) == 1
    assert seen.windows("failed: newest", "failed", 0) == []
