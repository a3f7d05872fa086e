"""What is new in a log: a long one is read once, however often it says the same."""

from __future__ import annotations

import itertools
import string

import pytest

from ortgpu_fix.log_lines.patterns import (
    MOST_ALIKE,
    MOST_PLACES,
    MOST_SHAPES,
    REACH,
    Novelty,
    Words,
)


def words(count: int) -> list[str]:
    """Return so many words without a digit, and without a letter of a hexadecimal number."""
    letters = [letter for letter in string.ascii_lowercase if letter not in "abcdef"]
    return ["".join(each) for each in itertools.islice(itertools.product(letters, repeat=3), count)]


@pytest.mark.parametrize(
    ("anchor", "held"),
    [
        ("Failed to load library", True),
        ("load", True),
        ("iled to lo", True),  # parts of words at its ends
        ("ailed to load libr", True),
        ("to load", True),
        ("libfoo.so.", True),  # its number is another's as well
        ("libfoo.so.9", True),
        ("Failed to find", False),
        ("Failed at load library", False),  # a word between must be there as a whole
        ("Failed t load", False),
        ("libbar.so", False),
        ("Ünknown", False),
        ("", True),
        (" ", True),
    ],
)
def test_what_words_can_stand_in_a_text(anchor: str, *, held: bool) -> None:
    """In any order: where they do not, none of a thousand patterns has to be looked for."""
    text = "x: library\nFailed at\nto load 17 libfoo.so.12"

    assert Words(text.replace(" at", "")).may_hold(anchor) is held


def test_a_window_is_the_line_or_as_much_as_a_pattern_sees() -> None:
    text = "before\nit failed here\nafter"
    assert Novelty().windows(text, "failed", 0) == [(7, 21)]
    assert Novelty().windows(text, "after", 0) == [(22, 27)]
    assert Novelty().windows(text, "before", 0) == [(0, 6)]

    long = "x" * 3 * REACH + "failed" + "y" * 3 * REACH
    start = 3 * REACH
    assert Novelty().windows(long, "failed", 0) == [(start - REACH, start + 6 + REACH)]


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
