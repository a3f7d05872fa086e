"""Make a lock of a group's plan: what an engine resolves around it, and where the wheels are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from ..companions.build import LocalWheel, build_companions
from ..companions.contents import LIBRARIES
from ..companions.library_list import libraries
from ..engine.choose import Resolver
from ..errors import Error
from ..facts.model import Facts
from ..facts.wheel_tags import tags_of
from ..fleet.model import Group, TargetPlan
from ..index.client import Index
from ..index.folder import local_path
from ..index.page import without_credentials
from ..index.pinning import pin_from_index
from ..index.wheel_choice import WheelTarget
from ..matrix.model import Matrix
from ..matrix.torch import COMPANIONS, TORCH
from ..plan.wheels import HERE, PYPI, Pinned, Wheel
from ..resolve.options import PlanOptions
from ..resolve.situation import Situation, situation
from ..versions import allows
from .model import Lock, LockTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBuilder:
    """All that locks are made with."""

    options: PlanOptions
    matrix: Matrix
    index: Index
    resolver: Resolver
    command: str
    """What the lock says that it was made by."""
    folder: Path
    """Where the lock will be."""
    companions: str | None = None
    """Where the companions are put, a folder or an address; None: they do not travel."""
    addresses: bool = False
    """The format names every wheel by its address."""

    def lock(self, group: Group) -> Lock:
        """Return the lock of `group`.

        Raises Error `requirements-impossible`, `files-not-here`, and those of `Index` and
        `pin_from_index`.
        """
        return Lock(
            distribution=group.distribution,
            version=group.version,
            cuda=group.cuda,
            preload_dlls=self._preloads(group),
            targets=tuple(self._target(target) for target in group.targets),
            command=self.command,
            matrix_date=self.matrix.date,
            matrix_digest=self.matrix.digest,
        )

    def files(self, group: Group) -> list[Pinned]:
        """Return every wheel that the machines of `group` need, each once, and where it is.

        Of the ordinary distributions it is the one that fits best. Raises as `lock` does.
        """
        found: list[Pinned] = []
        for target in group.targets:
            chosen = [self._found(wheel, target.facts) for wheel in target.plan.selection]
            best: dict[str, Pinned] = {}
            for one in self._closure(target, chosen):
                best.setdefault(one.wheel.name, one)
            found += [*chosen, *best.values()]
        return found

    def companion_wheels(self, target: TargetPlan) -> tuple[LocalWheel, ...]:
        """Return the companions of a target's plan that are wished for."""
        wished = {LIBRARIES: self.options.autoload}
        made = build_companions(
            target.plan.selection, self.matrix, target.platform, self.matrix.modules
        )
        return tuple(wheel for wheel in made if wished.get(wheel.name, self.options.provide))

    def _preloads(self, group: Group) -> bool:
        platforms = {target.platform for target in group.targets}
        return all(
            build.preload_dlls
            for build in self.matrix.builds
            if build.version == group.version and build.platform in platforms
        )

    def _target(self, target: TargetPlan) -> LockTarget:
        entries = libraries(target.plan.selection, self.matrix, target.platform)
        chosen = [self._found(wheel, target.facts) for wheel in target.plan.selection]
        closure = self._closure(target, chosen)
        chosen = [one._replace(url=self._address(one.url)) for one in chosen]
        if self.companions is not None:
            chosen += [
                _companion(wheel, self._place(wheel)) for wheel in self.companion_wheels(target)
            ]
        return LockTarget(
            machines=tuple((machine.name, machine.facts) for machine in target.machines),
            facts=target.facts,
            chosen=tuple(chosen),
            closure=tuple(one._replace(url=self._address(one.url)) for one in closure),
            ranges=target.plan.requires,
            libraries=tuple(dict.fromkeys(entry.path.rpartition("/")[0] for entry in entries)),
        )

    def _closure(self, target: TargetPlan, chosen: Sequence[Pinned]) -> tuple[Pinned, ...]:
        """Return the ordinary distributions, resolved as if nothing was installed.

        What torch requires is known to torch alone, so the engine reads it from its wheel.
        """
        held = {one.wheel.name: one.wheel.version for one in chosen}
        staying = tuple(row for row in target.facts.packages if row.name not in held)
        facts = target.facts._replace(packages=staying)
        asked = [one for one in chosen if one.wheel.name in {TORCH, *COMPANIONS}]
        within = _demands(situation(facts, self.options, self.matrix), held)
        if asked:
            within += [f"{name}=={version}" for name, version in held.items()]
        with tempfile.TemporaryDirectory() as folder:
            found = self.resolver.resolve_for(
                [*target.plan.requires, *(_requirement(one) for one in asked)],
                within,
                facts,
                replace(self.index.sources, alone=bool(asked)),
                Path(folder),
            )
        return tuple(one for one in found if one.wheel.name not in held)

    def _found(self, wheel: Wheel, facts: Facts) -> Pinned:
        """Return a wheel of the set, with its address where the lock names it by that."""
        fit = WheelTarget(python=facts.python.version, tags=tuple(tags_of(facts)))
        known = pin_from_index(wheel, self.index, fit)
        if not self.addresses and known.index_url == PYPI:
            return Pinned(wheel=known, url="")
        sources = self.index.sources
        near = sources.near(known.file)
        if near is not None:
            return Pinned(wheel=known, url=near.absolute().as_uri())
        if sources.offline:
            raise Error("files-not-here", files=known.file, folder=str(sources.find_links or "-"))
        return Pinned(wheel=known, url=self.index.find(known))

    def _address(self, url: str) -> str:
        """Return `url` as the lock has it: a file of this machine as seen from the lock."""
        if not url:
            return ""
        return (
            self._relative(local_path(url)) if url.startswith("file:") else without_credentials(url)
        )

    def _place(self, wheel: LocalWheel) -> str:
        """Return the address of a companion."""
        assert self.companions is not None  # noqa: S101 - asked only where they travel
        if "://" in self.companions:
            return f"{self.companions.rstrip('/')}/{quote(wheel.file)}"
        path = Path(self.companions) / wheel.file
        return path.as_posix() if path.is_absolute() else self._relative(path.absolute())

    def _relative(self, path: Path) -> str:
        try:
            text = Path(os.path.relpath(path, self.folder)).as_posix()
        except ValueError:  # another drive of Windows
            return path.as_posix()
        return text if text.startswith("../") else f"./{text}"


def _companion(made: LocalWheel, address: str) -> Pinned:
    wheel = Wheel(
        name=made.name,
        version=made.version,
        index_url=HERE,
        file=made.file,
        size=len(made.content),
        sha256=made.sha256,
    )
    return Pinned(wheel=wheel, url=address)


def _requirement(one: Pinned) -> str:
    """Return the requirement that stands for this wheel and no other."""
    named = f"{one.wheel.name}=={one.wheel.version}"
    return f"{one.wheel.name} @ {one.url}" if one.url else named


def _demands(here: Situation, held: Collection[str]) -> list[str]:
    """Return what installed distributions require of others, where that holds today."""
    lines: set[str] = set()
    for name, rows in here.demands.items():
        installed = here.facts.package(name)
        for demand in rows:
            broken = installed is not None and not allows(demand.specifier, installed.version)
            if str(demand.specifier) and name not in held and not broken:
                lines.add(f"{name}{demand.specifier}")
    return sorted(lines)
