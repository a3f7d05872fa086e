"""Build the lock of a group's plan: uv compiles it, once for each kind of machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from ..companions.build import LocalWheel, build_companions
from ..companions.contents import LIBRARIES
from ..companions.library_list import libraries
from ..facts.markers import marker_environment
from ..facts.model import Facts
from ..facts.wheel_tags import tags_of
from ..index.client import Index
from ..index.folder import local_path
from ..index.page import without_credentials
from ..matrix.model import Matrix
from ..messages.shells import PastedCommand
from ..plan.wheels import PYPI, TORCH_FAMILY, Pinned, first_of_each, index_of_torch, oldest_python
from ..resolve.options import PlanOptions
from ..resolve.situation import Situation, situation_of
from ..uv.compile import compile_plan
from ..uv.output import is_taken_as_older, uv_platform
from ..uv.program import Uv
from ..uv.project import Question
from ..versions import allows, numbers
from .groups import Group, TargetPlan
from .model import Lock, LockTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBuilder:
    """What every lock is built with."""

    options: PlanOptions
    matrix: Matrix
    index: Index
    uv: Uv
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

        Raises as `compile_plan`.
        """
        platforms = {target.platform for target in group.targets}
        builds = self.matrix.builds_of(group.version, platforms)
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
            chosen, closure = self._compiled(target)
            files += [*chosen, *first_of_each(closure)]
        return files

    def companion_wheels(self, target: TargetPlan) -> tuple[LocalWheel, ...]:
        """Return the companions of a target's plan that the options want."""
        wanted = {LIBRARIES: self.options.autoload}
        plan = target.plan
        wheels = build_companions(
            plan.selection, self.matrix, target.platform, self.matrix.modules, plan.placeholder
        )
        return tuple(wheel for wheel in wheels if wanted.get(wheel.name, self.options.provide))

    def _target(self, target: TargetPlan) -> LockTarget:
        entries = libraries(target.plan.selection, self.matrix, target.platform)
        found, closure = self._compiled(target)
        chosen = [
            pinned._replace(url=self._address(pinned.url) if self._has_address(pinned) else "")
            for pinned in found
        ]
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

    def _compiled(self, target: TargetPlan) -> tuple[list[Pinned], list[Pinned]]:
        """Return the wheels of the plan, and the others, as if nothing was installed.

        Only the wheel of torch says what torch requires, so uv reads it. uv has no option for a
        free-threaded Python of another machine: for one it chooses versions for all platforms.
        """
        selection = target.plan.selection
        versions = {wheel.name: wheel.version for wheel in selection}
        others = tuple(package for package in target.facts.packages if package.name not in versions)
        facts = target.facts._replace(packages=others)
        within = _demands(situation_of(facts, self.options, self.matrix), versions)
        if TORCH_FAMILY.intersection(versions):
            within += [f"{name}=={version}" for name, version in versions.items()]
        python = facts.python
        free = python.free_threaded
        platform = ("--universal",) if free else ("--python-platform", uv_platform(facts))
        question = Question(
            wheels=selection,
            unread=TORCH_FAMILY,
            behind=index_of_torch(selection),
            requires=target.plan.requires,
            within=tuple(within),
            python=_python(python.version, *platform),
            version=python.version,
            tags=tuple(tags_of(facts)),
            markers=marker_environment(facts),
        )
        found = self._answered(question, facts)
        ours = [self.index.sized(pinned) for pinned in found if pinned.wheel.name in versions]
        return ours, [pinned for pinned in found if pinned.wheel.name not in versions]

    def _answered(self, question: Question, facts: Facts) -> tuple[Pinned, ...]:
        """Have uv compile; the wheels of the plan by themselves where uv knows no such glibc.

        They fit, which the plan knows; what is chosen besides has to fit the next older one.
        """
        parts = [question]
        if is_taken_as_older(facts) and not question.unread.intersection(
            wheel.name for wheel in question.wheels
        ):
            python = _python(question.version, "--universal")
            ours = replace(question, requires=(), python=python)
            parts = [ours, replace(question, wheels=())]
        found: list[Pinned] = []
        for part in parts:
            with tempfile.TemporaryDirectory() as folder:
                found += compile_plan(self.uv, part, self.index, Path(folder))
        return tuple(found)

    def _has_address(self, pinned: Pinned) -> bool:
        return self.addresses or pinned.wheel.index_url != PYPI

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


def _python(version: str, *platform: str) -> tuple[str, ...]:
    """Return uv's options for a Python that need not be here."""
    return ("--python-version", version.rstrip("+"), "--python", sys.executable, *platform)


def _demands(situation: Situation, chosen: Collection[str]) -> list[str]:
    """Return what installed distributions require of others, where that is satisfied today."""
    lines: set[str] = set()
    for name, demands in situation.demands.items():
        installed = situation.facts.package(name)
        for demand in demands:
            broken = installed is not None and not allows(demand.specifier, installed.version)
            if str(demand.specifier) and name not in chosen and not broken:
                lines.add(f"{name}{demand.specifier}")
    return sorted(lines)
