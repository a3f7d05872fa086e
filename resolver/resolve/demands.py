"""What installed distributions require of others."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..facts.model import Package
from ..plan.reasons import Named, RequirementLine
from ..versions import requirement

_NAME = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(\[)?")
"""The name at the begin of a requirement, and whether extras follow (PEP 508)."""


class Demand(NamedTuple):
    """What something requires of a distribution."""

    by: Named | RequirementLine
    specifier: SpecifierSet

    @property
    def distribution(self) -> str | None:
        """The canonical name of the distribution that requires it; None: the user's file does."""
        return self.by.name if isinstance(self.by, Named) else None


class _Line(NamedTuple):
    """A requirement that nobody has parsed yet."""

    by: Named
    text: str
    extra: str
    """The extra of `by` through which it is asked for, or empty."""


class Demands(Mapping[str, tuple[Demand, ...]]):
    """Requirements in force, by the canonical name of what is required.

    One is parsed when its name is asked for: a plan asks for few of the thousands that an
    environment has.
    """

    def __init__(self, lines: Mapping[str, Sequence[_Line]], markers: Mapping[str, str]) -> None:
        """Take requirements by name, and the environment of their markers."""
        self._lines, self._markers = lines, markers
        self._found: dict[str, tuple[Demand, ...]] = {}

    def __getitem__(self, name: str) -> tuple[Demand, ...]:
        if name not in self._found:
            self._found[name] = tuple(self._in_force(name))
        if not self._found[name]:
            raise KeyError(name)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name in self._lines if self.get(name))

    def _in_force(self, name: str) -> Iterator[Demand]:
        for line in self._lines.get(name, ()):
            wanted = requirement(line.text)
            if wanted is None or not is_in_force(wanted, self._markers, line.extra):
                continue
            if line.extra and is_in_force(wanted, self._markers, ""):
                continue  # in force without the extra, so it is there already
            yield Demand(by=line.by, specifier=wanted.specifier)


@lru_cache(maxsize=64)  # most unlocks are tried with the same packages
def demands_of(
    packages: tuple[Package, ...],
    environment: tuple[tuple[str, str], ...],
    extras: tuple[tuple[str, tuple[str, ...]], ...],
) -> Demands:
    """Return what `packages` require, also behind extras that one of them asks another for.

    `extras` are those in force by what is installed (`extras_in_force`). torch 2.11 and newer pins
    its nvidia wheels through `cuda-toolkit[cublas,…]==13.0.2`.
    """
    markers = dict(environment)
    lines: defaultdict[str, list[_Line]] = defaultdict(list)
    by_name = {package.name: package for package in packages}
    waiting = [(package, "") for package in packages]
    waiting += [
        (by_name[name], extra) for name, rows in extras for extra in rows if name in by_name
    ]
    visited: set[tuple[str, str]] = set()
    while waiting:
        package, extra = waiting.pop()
        if (package.name, extra) in visited:
            continue
        visited.add((package.name, extra))
        by = Named(package.name, package.version)
        for text in package.requires:
            name, asks = required_name(text)
            lines[name].append(_Line(by, text, extra))
            wanted = requirement(text) if asks and name in by_name else None
            if wanted is not None and is_in_force(wanted, markers, extra):
                waiting.extend((by_name[name], each) for each in sorted(wanted.extras))
    return Demands(lines, markers)


@lru_cache(maxsize=65536)
def required_name(text: str) -> tuple[str, bool]:
    """Return the canonical name at the begin of a requirement, and whether it asks for extras."""
    begin = _NAME.match(text)
    return (canonicalize_name(begin[1]), bool(begin[2])) if begin else ("", False)
