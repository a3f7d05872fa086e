"""What a whole environment requires, and what a plan makes of it, asked of its metadata alone.

It shares no code with the program: a part of `checker`, and the judge of real environments.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

Row = Mapping[str, Any]
GPU, CPU = "onnxruntime-gpu", "onnxruntime"


@functools.cache
def parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def within(text: str, specifier: SpecifierSet) -> bool:
    try:
        return specifier.contains(Version(text), prereleases=True)
    except InvalidVersion:
        return not str(specifier)


def holds(line: Requirement, markers: Mapping[str, str], extra: str = "") -> bool:
    if line.marker is None:
        return True
    return bool(line.marker.evaluate({**markers, "extra": extra}))


class Wanted(NamedTuple):
    """A requirement in force."""

    by: str
    name: str
    specifier: SpecifierSet


class Whole:
    """The distributions of an environment, by name, and the environment of their markers."""

    def __init__(self, rows: Iterable[Row], markers: Mapping[str, str]) -> None:
        self.rows: dict[str, Row] = {canonicalize_name(row["name"]): row for row in rows}
        self.markers = markers
        self._extras: dict[str, set[str]] = {}

    def version(self, name: str) -> str | None:
        row = self.rows.get(name) or (self.rows.get(GPU) if name == CPU else None)
        return row["version"] if row else None

    def lines(self, name: str) -> list[Requirement]:
        texts = self.rows[name].get("requires", ()) if name in self.rows else ()
        return [line for line in map(parsed, texts) if line is not None]

    def has_all(self, name: str, extra: str, trail: tuple[tuple[str, str], ...] = ()) -> bool:
        """Tell whether all that an extra asks for is there; of two that ask for each other, yes."""
        if (name, extra) in trail:
            return True
        own = [
            line
            for line in self.lines(name)
            if holds(line, self.markers, extra) and not holds(line, self.markers)
        ]
        return bool(own) and all(
            (found := self.version(canonicalize_name(line.name))) is not None
            and within(found, line.specifier)
            and all(
                self.has_all(canonicalize_name(line.name), each, (*trail, (name, extra)))
                for each in line.extras
            )
            for line in own
        )

    def extras(self) -> dict[str, set[str]]:
        """Return the extras in force: whole ones, and those that are asked for."""
        if not self._extras:
            found: dict[str, set[str]] = {
                name: {
                    extra
                    for text in row.get("requires", ())
                    for extra in re.findall(r"extra *== *[\"']([^\"']+)", text)
                    if self.has_all(name, extra)
                }
                for name, row in self.rows.items()
            }
            self._extras = asked_for(self, found)
        return self._extras

    def wanted(self, extras: Mapping[str, Collection[str]] | None = None) -> Iterator[Wanted]:
        """Yield what is required, with these extras in force, or with its own."""
        for name in self.rows:
            for line in self.lines(name):
                more = (self.extras() if extras is None else extras).get(name, ())
                if any(holds(line, self.markers, extra) for extra in ("", *more)):
                    yield Wanted(name, canonicalize_name(line.name), line.specifier)

    def unmet(self, extras: Mapping[str, Collection[str]] | None = None) -> set[tuple[str, str]]:
        """Return who misses what: `("fastembed", "onnxruntime<1.20")`."""
        missing = set()
        for each in self.wanted(extras):
            found = self.version(each.name)
            if found is None or not _meets(found, each.specifier):
                missing.add((each.by, f"{each.name}{each.specifier}"))
        return missing

    def needed(
        self, names: Collection[str], used: Collection[str], extras: Mapping[str, Collection[str]]
    ) -> set[str]:
        """Return which of `names` are used, or required by who is needed itself."""
        by: dict[str, set[str]] = {name: set() for name in names}
        for each in self.wanted(extras):
            if each.name in by:
                by[each.name].add(each.by)
        found = {name for name in names if name in used or by[name] - by.keys()}
        while more := {name for name in names if by[name] & found} - found:
            found |= more
        return found


def _meets(text: str, specifier: SpecifierSet) -> bool:
    try:
        return specifier.contains(Version(text), prereleases=True)
    except InvalidVersion:
        return True


def asked_for(whole: Whole, extras: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return `extras` with those that a requirement in force asks for: `toolkit[cublas]`."""
    count = -1
    while count != sum(map(len, extras.values())):
        count = sum(map(len, extras.values()))
        for name in whole.rows:
            for line in whole.lines(name):
                if any(holds(line, whole.markers, extra) for extra in ("", *extras[name])):
                    key = canonicalize_name(line.name)
                    if key in extras:
                        extras[key] |= line.extras
    return extras


def after(before: Whole, plan: Row) -> Whole:
    """Return the environment after a plan: what comes requires nothing that is known."""
    coming = [*plan["install"], *plan["companions"]]
    gone = {*plan["uninstall"], *(row["name"] for row in coming)}
    staying = [row for name, row in before.rows.items() if name not in gone]
    return Whole([*staying, *coming], before.markers)


def newly_unmet(before: Whole, plan: Row) -> set[tuple[str, str]]:
    """Return who misses what after a plan, and did not before it."""
    extras = before.extras()
    moved = {*plan["uninstall"], *(row["name"] for row in plan["install"])}
    then = after(before, plan)
    kept = {name: extras.get(name, set()) if name not in moved else set() for name in then.rows}
    return then.unmet(kept) - before.unmet()


def named(plan: Row) -> set[tuple[str, str]]:
    """Return what the plan says of who would miss what."""
    told = [row["summary"] for row in plan["findings"] if row["code"] == "would-conflict"]
    row = r"(?:: |, )([\w.-]+) [^ ,]+ \(([^()]*(?:\([^()]*\))?[^()]*)\)"
    rows = re.findall(row, " ".join(told))
    return {
        (name, f"{canonicalize_name(line.name)}{line.specifier}")
        for name, text in rows
        if (line := parsed(text)) is not None
    }
