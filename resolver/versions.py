"""Versions, dotted numbers and requirements, compared the way the field does.

Parsing a version takes microseconds and a plan compares thousands: results are kept.
"""

from __future__ import annotations

import functools

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


@functools.cache
def version(text: str) -> Version | None:
    """Return the PEP 440 version of `text`; None where it is none (such do get installed)."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


@functools.cache
def requirement(text: str) -> Requirement | None:
    """Return the PEP 508 requirement of `text`; None where it is none (such metadata exists)."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


@functools.cache
def numbers(text: str) -> tuple[int, ...]:
    """Return `12.8` as `(12, 8)`: CUDA versions, driver releases and compute capabilities.

    What is not a number ends the reading: `9.0a` gives `(9, 0)`.
    """
    found: list[int] = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)


def major(text: str) -> str:
    """Return the first number of a dotted version: the CUDA major `12` of `12.8`."""
    return text.partition(".")[0]


def allows(specifier: SpecifierSet, text: str) -> bool:
    """Tell whether `specifier` allows the version `text`; pre-releases count, as installed ones do.

    A version that is not PEP 440 is allowed only where anything is.
    """
    if version(text) is None:
        return not str(specifier)
    return specifier.contains(text, prereleases=True)


def at_least(text: str, floor: str) -> bool:
    """Tell whether the distribution version `text` is `floor` or newer; False where not known."""
    left, right = version(text), version(floor)
    return left is not None and right is not None and left >= right


def newest_first(text: str) -> Version:
    """Return the key that sorts distribution versions; what is no version sorts lowest."""
    return version(text) or Version("0.dev0")
