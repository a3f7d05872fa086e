"""What the smallest set is, asked of the raw tables by trying every set that could be smaller.

It shares no code with the program: `checker` asks it about plans of `--prefer small`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.specifiers import SpecifierSet
from raw_tables import ORT, Machine, Row, meets, version

Set = Mapping[str, str]
"""Releases by distribution."""


class SmallSets:
    """The sets that a machine may get instead of the usual one."""

    def __init__(self, machine: Machine, build: Row, usual: Set) -> None:
        self.machine, self.build, self.usual = machine, build, usual
        self.floors = [
            row for row in machine.tables["floors"]["floor"] if row["platform"] == machine.platform
        ]
        self.known: dict[str, list[str]] = {}
        self.defects = machine.tables["limits"]["defect"]

    def wrong(self, selected: Set) -> Iterator[str]:
        """Yield what no small set may be, and a set with fewer bytes where there is one."""
        taken = {name: selected[name] for name in selected.keys() & self.machine.kinds.keys()}
        if any(self.usual.get(name) != release for name, release in taken.items()):
            for name, release in taken.items():
                if not self.allowed(name, release):
                    yield f"{name} {release} is no release for a small set"
            yield from self.clashes({ORT: self.build["version"], **taken})
        total = self.bytes(taken)
        usual = {name: self.usual[name] for name in self.usual.keys() & self.machine.kinds.keys()}
        if total > self.bytes(usual):
            yield f"{total} bytes, the usual set has {self.bytes(usual)}"
        if self.floor(ORT, self.build["version"]) is not None:
            wanted = {row["distribution"] for row in self.build["needs"] if "distribution" in row}
            smaller = next(self.sets({}, sorted(wanted), total), None)
            if smaller:
                yield f"{total} bytes, and {self.bytes(smaller)} would do: {smaller}"

    def sets(self, chosen: dict[str, str], waiting: list[str], limit: int) -> Iterator[Set]:
        """Yield every right set with fewer bytes than `limit`."""
        if (
            self.bytes(chosen) + sum(min(self.sizes(name), default=limit) for name in waiting)
            >= limit
        ):
            return
        if not waiting:
            yield chosen
            return
        name, *rest = waiting
        for release in self.possible(name):
            more = {**chosen, name: release}
            if not any(self.clashes({ORT: self.build["version"], **more})):
                follow = self.machine.follows(name, release) - more.keys() - set(rest)
                yield from self.sets(more, [*rest, *sorted(follow)], limit)

    def possible(self, name: str) -> list[str]:
        if name not in self.known:
            releases = self.machine.releases(name)
            self.known[name] = [release for release in releases if self.allowed(name, release)]
        return self.known[name]

    def sizes(self, name: str) -> list[int]:
        return [self.bytes({name: release}) for release in self.possible(name)]

    def bytes(self, chosen: Set) -> int:
        """Return the bytes to download."""
        sizes = (
            self.machine.releases(name)[release].get("size", 0)
            for name, release in chosen.items()
            if not self._there(name, release)
        )
        return sum(sizes)

    def _there(self, name: str, release: str) -> bool:
        row = self.machine.installed.get(name, {"version": None})
        return bool(row["version"] == release and row.get("intact", True))

    def floor(self, name: str, release: str) -> Row | None:
        """Return what was read of a release."""
        at = version(release)
        rows = [row for row in self.floors if row["name"] == name]
        return next((r for r in rows if version(r["first"]) <= at <= version(r["last"])), None)

    def allowed(self, name: str, release: str) -> bool:
        """Tell whether a release may be in a small set, beside what it is with."""
        machine, usual = self.machine, self.usual.get(name)
        read = self.floor(name, release)
        if not machine.fits(name, release, self.build):
            return False
        users = {user.cuda for user in machine.users if not user.declares}
        fixed = name.startswith("nvidia-cuda-runtime") or machine.kinds[name]["cuda"] in users
        if release != usual and (read is None or (fixed and usual)):
            return False
        if (
            read
            and read.get("targets")
            and not {g for g in machine.gpus or () if g} <= {*read["targets"]}
        ):
            return False
        return not any(
            name in row["names"] and meets(release, SpecifierSet(row["versions"]))
            for row in self.defects
            if "beside" not in row
        )

    def clashes(self, chosen: Set) -> Iterator[str]:
        """Yield the pairs of which one lacks a symbol that the other takes, or that are wrong."""
        for name, release in chosen.items():
            for other, since in (self.floor(name, release) or {"needs": {}})["needs"].items():
                if other in chosen and version(chosen[other]) < version(since):
                    yield f"{name} {release} takes symbols that {other} {chosen[other]} lacks"
            for row in self.defects:
                if name in row["names"] and meets(release, SpecifierSet(row["versions"])):
                    for other, bad in row.get("beside", {}).items():
                        if other in chosen and meets(chosen[other], SpecifierSet(bad)):
                            yield f"{name} {release} is wrong beside {other} {chosen[other]}"
