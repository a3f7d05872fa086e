"""Versions, dotted numbers and requirements, and what is none of them."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from ortgpu_fix.versions import (
    allows,
    at_least,
    count,
    newest_first,
    numbers,
    requirement,
    version,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("12.8", (12, 8)), ("9.0a", (9, 0)), ("535.104.12", (535, 104, 12)), ("12.", (12,))),
        *(("x", ()), ("", ()), (".12", ()), ("v12", ()), ("12.8.x", (12, 8))),
    ],
)
def test_numbers_end_before_anything_else(text: str, expected: tuple[int, ...]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "floor", "reached"),
    [
        *(("1.2", "1.2", True), ("1.2.0", "1.2", True), ("1.10", "1.9", True)),
        *(("1.2rc1", "1.2", False), ("1.1", "1.2", False), ("1", "junk", False)),
        ("junk", "1", False),
    ],
)
def test_what_reaches_a_version(text: str, floor: str, *, reached: bool) -> None:
    assert at_least(text, floor) is reached


@pytest.mark.parametrize(
    ("specifier", "text", "allowed"),
    [
        *((">=1.0", "1.1rc1", True), (">=1.0", "1.0rc1", False)),  # by its numbers
        *(("", "junk", True), (">1", "junk", False)),
    ],
)
def test_what_a_specifier_allows(specifier: str, text: str, *, allowed: bool) -> None:
    assert allows(SpecifierSet(specifier), text) is allowed


def test_what_is_no_version_sorts_lowest() -> None:
    assert sorted(["1.10", "1.9", "junk", "0.0.1a1"], key=newest_first) == [
        *("junk", "0.0.1a1"),
        *("1.9", "1.10"),
    ]
    assert newest_first("junk") < newest_first("0.1")
    assert (version("junk"), str(version("1.0"))) == (None, "1.0")


@pytest.mark.parametrize(
    "text", ["not one!", "a; " + "(" * 5000 + "os_name == 'a'" + ")" * 5000], ids=["none", "deep"]
)
def test_what_is_no_requirement(text: str) -> None:
    assert requirement(text) is None


DIGITS = "1" * 600
"""More of them than any number has; Python makes no number of more than 4,300."""


def test_a_number_without_end_is_none() -> None:
    """The version of one installed distribution made an internal error of every plan."""
    for endless in (f"{DIGITS}1", "1" * 5000):
        assert version(endless) is None
        assert requirement(f"x>={endless}") is None
        assert count(endless) is None
        assert numbers(f"{endless}.2") == (int(DIGITS),)
        assert numbers(f"2.{endless}") == (2, int(DIGITS))
        assert not at_least(endless, "1")
    assert str(version(DIGITS)) == DIGITS
    assert str(requirement(f"x>={DIGITS}")) == f"x>={DIGITS}"
    assert count(DIGITS) == int(DIGITS)
