"""Versions, dotted numbers and requirements; parsed ones are cached: a plan compares thousands."""

from __future__ import annotations

import functools
import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

_NUMBERS = re.compile(r"[0-9]{1,600}(?:\.[0-9]{1,600})*")
_COUNT = re.compile("[0-9]{1,600}")
_ENDLESS = re.compile("[0-9]{601}")
"""More digits than any number has here: Python may be told to make none of more than 640.

Source: https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
"""


@functools.cache
def version(text: str) -> Version | None:
    """Return the PEP 440 version `text`; None where it is none (old distributions have such)."""
    try:
        return None if _ENDLESS.search(text) else Version(text)
    except InvalidVersion:
        return None


@functools.cache
def requirement(text: str) -> Requirement | None:
    """Return the PEP 508 requirement `text`; None where it is none (old metadata has such).

    One that is nested too deep to be parsed is none, nor is one with an endless number.
    """
    try:
        return None if _ENDLESS.search(text) else Requirement(text)
    except (InvalidRequirement, RecursionError):
        return None


@functools.cache
def numbers(text: str) -> tuple[int, ...]:
    """Return `12.8` as `(12, 8)`: CUDA versions, driver releases and compute capabilities.

    They end before anything else: `9.0a` gives `(9, 0)`.
    """
    match = _NUMBERS.match(text)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def count(text: str) -> int | None:
    """Return the whole number `text`, in ASCII; None where it is none, or endless."""
    return int(text) if _COUNT.fullmatch(text) else None


def major(text: str) -> str:
    """Return the first number of a dotted version: the CUDA major `12` of `12.8`."""
    return text.partition(".")[0]


def allows(specifier: SpecifierSet, text: str) -> bool:
    """Return whether `specifier` allows the version `text`, be it a pre-release.

    A version that is not PEP 440 is allowed only by an empty specifier.
    """
    number = version(text)
    return not str(specifier) if number is None else specifier.contains(number, prereleases=True)


def at_least(text: str, floor: str) -> bool:
    """Return whether the version `text` is `floor` or newer; False where one is not PEP 440."""
    left, right = version(text), version(floor)
    return left is not None and right is not None and left >= right


def newest_first(text: str) -> Version:
    """Return the sort key of a distribution version; one that is not PEP 440 sorts lowest."""
    return version(text) or Version("0.dev0")


@functools.lru_cache(maxsize=4096)  # the same few for every release, on every machine of a fleet
def overlap(left: SpecifierSet, right: SpecifierSet) -> bool:
    """Return whether some version satisfies both.

    Tried are the versions that they name, the next after each, and one below and above all: enough
    for bounds and pins.
    """
    named = [spec.version.removesuffix(".*") for spec in (*left, *right)]
    both = left & right
    points = [point for version in named for point in (version, f"{version}.0.1", f"{version}.1")]
    return any(both.contains(point, prereleases=True) for point in ["0", *points, "9999"])
