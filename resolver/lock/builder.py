"""Build the lock of a group's plan: pip or uv resolves the other distributions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ..companions.build import LocalWheel, build_companions
from ..companions.contents import LIBRARIES
from ..companions.library_list import libraries
from ..engine.choose import Resolver
from ..facts.wheel_tags import tags_of
from ..index.client import Index
from ..index.folder import local_path
from ..index.page import without_credentials
from ..index.pinning import pin_from_index
from ..index.wheel_choice import WheelTarget
from ..matrix.model import Matrix
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..messages.shells import PastedCommand
from ..plan.wheels import PYPI, Pinned, Wheel, oldest_python
from ..resolve.options import PlanOptions
from ..resolve.situation import Situation, situation
from ..versions import allows, numbers
from .groups import Group, TargetPlan
from .model import Lock, LockTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBuilder:
    """What every lock is built with."""

    options: PlanOptions
    matrix: Matrix
    index: Index
    resolver: Resolver
    commands: tuple[PastedCommand, ...]
    """What is named in the lock as its making."""
    folder: Path
    """The folder of the lock."""
    companions: str | None = None
    """The folder or address of the companions; None: the lock does not contain them."""
    addresses: bool = False
    """The format has the address of every wheel."""

    def lock(self, group: Group) -> Lock:
        """Return the lock of `group`.

        Raises Error `requirements-impossible`, that of `IndexConfig.absent`, and those of `Index`
        and `pin_from_index`.
        """
        platforms = {target.platform for target in group.targets}
        builds = [
            build
            for build in self.matrix.builds
            if build.version == group.version and build.platform in platforms
        ]
        targets = tuple(self._target(target) for target in group.targets)
        pythons = sorted((target.where.python_version for target in targets), key=numbers)
        return Lock(
            distribution=group.distribution,
            version=group.version,
            cuda=group.cuda,
            python=oldest_python(
                builds,
                [wheel for target in group.targets for wheel in target.plan.selection],
                pythons[0],
            ),
            preload_dlls=all(build.preload_dlls for build in builds),
            targets=targets,
            commands=self.commands,
            matrix_date=self.matrix.date,
            matrix_digest=self.matrix.digest,
            matrix_added=self.matrix.added,
        )

    def files(self, group: Group) -> list[Pinned]:
        """Return every wheel that the machines of `group` need, each once, with its address.

        Of the other distributions it is the wheel that fits best. Raises as `lock` does.
        """
        files: list[Pinned] = []
        for target in group.targets:
            chosen = self._chosen(target)
            best: dict[str, Pinned] = {}
            for pinned in self._closure(target, chosen):
                best.setdefault(pinned.wheel.name, pinned)
            files += [*chosen, *best.values()]
        return files

    def companion_wheels(self, target: TargetPlan) -> tuple[LocalWheel, ...]:
        """Return the companions of a target's plan that the options want."""
        wanted = {LIBRARIES: self.options.autoload}
        wheels = build_companions(
            target.plan.selection, self.matrix, target.platform, self.matrix.modules
        )
        return tuple(wheel for wheel in wheels if wanted.get(wheel.name, self.options.provide))

    def _target(self, target: TargetPlan) -> LockTarget:
        entries = libraries(target.plan.selection, self.matrix, target.platform)
        chosen = self._chosen(target)
        closure = self._closure(target, chosen)
        chosen = [pinned._replace(url=self._address(pinned.url)) for pinned in chosen]
        if self.companions is not None:
            chosen += [
                Pinned(wheel=wheel.wheel, url=self._place(wheel, self.companions))
                for wheel in self.companion_wheels(target)
            ]
        return LockTarget(
            machines=tuple((machine.name, machine.facts) for machine in target.machines),
            facts=target.facts,
            chosen=tuple(chosen),
            closure=tuple(pinned._replace(url=self._address(pinned.url)) for pinned in closure),
            ranges=target.plan.requires,
            libraries=tuple(dict.fromkeys(entry.path.rpartition("/")[0] for entry in entries)),
        )

    def _closure(self, target: TargetPlan, chosen: Sequence[Pinned]) -> tuple[Pinned, ...]:
        """Return the other distributions, resolved as if nothing was installed.

        Only the wheel of torch tells what torch requires, so the engine reads it.
        """
        versions = {pinned.wheel.name: pinned.wheel.version for pinned in chosen}
        others = tuple(row for row in target.facts.packages if row.name not in versions)
        facts = target.facts._replace(packages=others)
        torch = [
            f"{pinned.wheel.name} @ {pinned.url}"
            if pinned.url
            else f"{pinned.wheel.name}=={pinned.wheel.version}"
            for pinned in chosen
            if pinned.wheel.name in {TORCH, *DOMAIN_LIBRARIES}
        ]
        constraints = _demands(situation(facts, self.options, self.matrix), versions)
        if torch:
            constraints += [f"{name}=={version}" for name, version in versions.items()]
        with tempfile.TemporaryDirectory() as folder:
            resolved = self.resolver.resolve_for(
                [*target.plan.requires, *torch],
                constraints,
                facts,
                self.index.sources,
                Path(folder),
            )
        return tuple(pinned for pinned in resolved if pinned.wheel.name not in versions)

    def _chosen(self, target: TargetPlan) -> list[Pinned]:
        fit = WheelTarget(python=target.facts.python.version, tags=tuple(tags_of(target.facts)))
        return [self._pinned(wheel, fit) for wheel in target.plan.selection]

    def _pinned(self, wheel: Wheel, fit: WheelTarget) -> Pinned:
        """Return a chosen wheel, with its address where the lock has that."""
        known = pin_from_index(wheel, self.index, fit)
        if not self.addresses and known.index_url == PYPI:
            return Pinned(wheel=known, url="")
        sources = self.index.sources
        near = sources.near(known.file)
        if near is not None:
            return Pinned(wheel=known, url=near.absolute().as_uri())
        if sources.offline:
            raise sources.absent(known.file)
        return Pinned(wheel=known, url=self.index.find(known))

    def _address(self, url: str) -> str:
        """Return `url` as in the lock: the path of a local file is relative to the lock."""
        if url.startswith("file:"):
            return self._relative(local_path(url))
        return without_credentials(url)

    def _place(self, wheel: LocalWheel, companions: str) -> str:
        """Return the address of a companion, which is in the folder or at the address given."""
        if "://" in companions:
            return f"{without_credentials(companions).rstrip('/')}/{quote(wheel.file)}"
        path = Path(companions) / wheel.file
        return path.as_posix() if path.is_absolute() else self._relative(path.absolute())

    def _relative(self, path: Path) -> str:
        try:
            text = Path(os.path.relpath(path, self.folder)).as_posix()
        except ValueError:  # another drive of Windows
            return path.as_posix()
        return text if text.startswith("../") else f"./{text}"


def _demands(here: Situation, chosen: Collection[str]) -> list[str]:
    """Return what installed distributions require of others, where that is satisfied today."""
    lines: set[str] = set()
    for name, rows in here.demands.items():
        installed = here.facts.package(name)
        for demand in rows:
            broken = installed is not None and not allows(demand.specifier, installed.version)
            if str(demand.specifier) and name not in chosen and not broken:
                lines.add(f"{name}{demand.specifier}")
    return sorted(lines)
