"""Follows requirements through the metadata of the distributions that were chosen for them.

pip evaluates environment markers for the Python that runs it, even where it resolves for another
platform: on Linux it leaves out what a Windows machine requires. So its result is checked with the
markers of the machine: what is superfluous in it, and what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..versions import requirement


class RequirementClosure(NamedTuple):
    """What requirements require in the end."""

    names: frozenset[str]
    """Canonical names of the known distributions that are required."""
    missing: tuple[str, ...]
    """Requirements of unknown distributions, without markers."""


def follow_requirements(
    requires: Iterable[str], known: Mapping[str, Sequence[str]], markers: Mapping[str, str]
) -> RequirementClosure:
    """Follow `requires` through `known`, the `Requires-Dist` lines of each distribution.

    `markers` is the environment for their markers.
    """
    waiting = _parse(requires)
    followed: set[tuple[str, str]] = set()
    missing: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name not in known:
            extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
            missing.add(f"{wanted.name}{extras}{wanted.specifier}")
            continue
        for extra in ("", *wanted.extras):
            if (name, extra) not in followed:
                followed.add((name, extra))
                waiting += [row for row in _parse(known[name]) if is_in_force(row, markers, extra)]
    return RequirementClosure(frozenset(name for name, _ in followed), tuple(sorted(missing)))


def _parse(lines: Iterable[str]) -> list[Requirement]:
    return [parsed for line in lines if (parsed := requirement(line))]
