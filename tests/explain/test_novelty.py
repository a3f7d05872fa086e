"""What is new in a log: a long one is read once, however often it says the same."""

from __future__ import annotations

import itertools
import string

import pytest

from ortgpu_fix.explain import novelty
from ortgpu_fix.explain.novelty import MOST_ALIKE, MOST_PLACES, MOST_SHAPES, REACH, Novelty

TALE = "starting 17\nloading 0x7f\nfailed: x 1\nready\n"


def read(seen: Novelty, piece: str, anchor: str = "failed") -> tuple[str, list[int]]:
    lines = seen.lines(piece)
    seen.windows(lines.text, anchor, 0)
    seen.done()
    return lines.text, [*lines.numbers]


def words(count: int) -> list[str]:
    """Return so many words without a digit, and without a letter of a hexadecimal number."""
    letters = [letter for letter in string.ascii_lowercase if letter not in "abcdef"]
    return ["".join(each) for each in itertools.islice(itertools.product(letters, repeat=3), count)]


def test_lines_that_told_nothing_are_left_out_when_they_come_again() -> None:
    seen = Novelty()

    assert read(seen, TALE) == (TALE, [0, 1, 2, 3, 4])
    assert read(seen, "loading 0x80\nready\nfailed: x 2\nstarting 3") == ("failed: x 2", [2])
    assert read(seen, "ready\nnew\nready\nready\nready") == ("new", [1])
    assert read(seen, "ready\nready\nnew\nready") == ("", [])


def test_where_most_is_new_all_is_read() -> None:
    """Taking out the rest would take longer."""
    seen = Novelty()
    read(seen, "silent\n")

    assert read(seen, "silent\nnew\nnewer") == ("silent\nnew\nnewer", [0, 1, 2])
    assert read(seen, "silent\nnewest") == ("newest", [1])


def test_a_line_that_told_something_is_told_from_one_like_it_later() -> None:
    seen = Novelty()
    read(seen, "failed: x\nsilent\n")

    assert read(seen, "failed: x\nsilent\nsilent\n", "another") == ("failed: x", [0])
    assert read(seen, "failed: x\nsilent\nsilent\n") == ("", [])


def test_no_more_lines_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(novelty, "MOST_LINES", 2)
    seen = Novelty()
    read(seen, "one\ntwo")
    read(seen, "three\nthree\nfour")

    assert read(seen, "one\ntwo\nthree\ntwo\ntwo") == ("three", [2])


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
    assert len(seen.windows("failed: liby.so.9999", "failed", 0)) == 1


def test_of_one_text_so_many_shapes_and_places_are_looked_at() -> None:
    shapes = "\n".join(f"failed: {word}" for word in words(MOST_SHAPES + 5))
    assert len(Novelty().windows(shapes, "failed", 0)) == MOST_SHAPES

    seen = Novelty()
    seen.windows("failed\n" * (MOST_PLACES - 1), "failed", 0)
    assert len(seen.windows("failed: new\nfailed: newer", "failed", 0)) == 1
    assert seen.windows("failed: newest", "failed", 0) == []
