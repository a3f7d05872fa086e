"""Choose a torch: the release, the CUDA and the index that fit machine and onnxruntime-gpu.

Each build is tried as if it were installed, with the same rules. The release of torch is chosen
first: the installed one if any of its builds fits, else the nearest that fits. Then
onnxruntime-gpu: the installed one if it works, else the newest that works with that release. Then
the build (`torch_rules.preference`).
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..facts.markers import is_in_force, marker_environment
from ..facts.model import Facts, Package
from ..matrix.model import Build
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH, TorchBuild
from ..plan.model import Rejected
from ..plan.reasons import Reason, reason
from ..plan.wheels import Wheel
from ..versions import allows, major, newest_first, requirement, version
from .environment import Demand
from .options import CUDA_LABEL, PlanOptions
from .situation import Situation, changed
from .torch_rules import against_machine, preference
from .torch_wheels import (
    kept_wheel,
    matching_domain_library,
    wheel_of_torch,
)

Works = Callable[[Build, Situation], bool]


class TorchChoice(NamedTuple):
    """A torch, and the environment with it."""

    situation: Situation
    """As if it were installed already."""
    build: Build
    """Of onnxruntime-gpu."""
    wheels: tuple[Wheel, ...]
    """torch, torchaudio and torchvision, kept ones included."""
    install: tuple[Wheel, ...]

    @property
    def torch(self) -> Wheel:
        """Return the wheel of torch, which is the first by name."""
        return self.wheels[0]


class TorchSearch(NamedTuple):
    """The result of the search for a torch."""

    choice: TorchChoice | None
    rejected: tuple[Rejected, ...]
    """The builds that come before the choice, and do not fit."""


def chooses_torch(situation: Situation) -> bool:
    """Return whether the options ask to choose a torch."""
    wish = situation.options.torch
    return wish != "keep" and (wish != "match" or situation.torch is not None)


def torch_of_lines(options: PlanOptions, facts: Facts) -> str:
    """Return what requirements files ask of torch (`==2.6.0`), or `keep`.

    An installed torch that is what they ask for is kept.
    """
    markers = marker_environment(facts)
    lines = filter(None, (requirement(line.text) for line in options.requirements))
    asked = [
        str(line.specifier)
        for line in lines
        if canonicalize_name(line.name) == TORCH and is_in_force(line, markers, "")
    ]
    wish = ",".join(filter(None, asked))
    installed = facts.package(TORCH)
    if installed is not None and allows(SpecifierSet(wish), installed.version):
        return "keep"
    return wish or "keep"


def without_torch(situation: Situation) -> Situation:
    """Return `situation` without torch and what moves with it: nothing requires them."""
    leaving = {TORCH, *DOMAIN_LIBRARIES, *situation.moving_with_torch}
    staying = [package for package in situation.facts.packages if package.name not in leaving]
    options = situation.options._replace(torch="keep")
    return changed(
        situation, facts=situation.facts._replace(packages=tuple(staying)), options=options
    )


def search_torch(situation: Situation, builds: Sequence[Build], works: Works) -> TorchSearch:
    """Return the torch for the first of `builds` of onnxruntime-gpu, best first, that `works`."""
    rejected: list[Rejected] = []
    for release in _releases(situation):
        able: list[tuple[TorchBuild, Situation, dict[str, Wheel]]] = []
        for build in sorted(release, key=lambda build: preference(build, situation)):
            refusal = against_machine(build, situation)
            tried = refusal or _tried(build, situation)
            if isinstance(tried, Reason):
                rejected.append(_rejection(build, tried, machine=refusal is not None))
            else:
                able.append((build, *tried))
        for wanted in builds:
            for _, with_torch, wheels in able:
                if works(wanted, with_torch):
                    return TorchSearch(
                        _choice(wanted, situation, with_torch, wheels), tuple(rejected)
                    )
        alone = reason("torch-without-partner")
        rejected += [_rejection(build, alone, machine=False) for build, _, _ in able]
    return TorchSearch(choice=None, rejected=tuple(rejected))


def nearest_runnable(situation: Situation) -> TorchBuild | None:
    """Return the build nearest to the torch of `situation` that the machine and its Python can run.

    A release that every installed package allows goes first.
    """
    anything = situation._replace(options=situation.options._replace(torch="match"))
    able = [
        build
        for release in _releases(anything)
        for build in sorted(release, key=lambda build: preference(build, situation))
        if against_machine(build, situation) is None
    ]
    allowed = (build for build in able if not refusing_release(build.version, situation))
    return next(allowed, next(iter(able), None))


def refusing_release(release: str, situation: Situation) -> list[Demand]:
    """Return what does not allow this release of torch; torchvision and torchaudio may change."""
    return [
        demand
        for demand in situation.demanded(TORCH)
        if demand.distribution not in DOMAIN_LIBRARIES and not allows(demand.specifier, release)
    ]


def _rejection(build: TorchBuild, why: Reason, *, machine: bool) -> Rejected:
    name = build.name
    return Rejected(TORCH, name, machine=(why,)) if machine else Rejected(TORCH, name, (), (why,))


def _releases(situation: Situation) -> Iterator[list[TorchBuild]]:
    """Yield the builds of each release that is wished for, the nearest release first."""
    wish = situation.options.torch
    of_cuda = re.fullmatch(CUDA_LABEL, wish) is not None
    wanted = SpecifierSet("" if wish == "match" or of_cuda else wish)
    labelled = "+" in wish
    installed_build = situation.torch.build if situation.torch else None
    by_release: dict[str, list[TorchBuild]] = {}
    for build in situation.matrix.torch.of(situation.platform):
        # A label (`+cu128`) asks for the build of PyTorch's own index.
        if of_cuda and build.local != wish:
            continue
        if build.cuda and allows(wanted, build.name) and not (labelled and build.wheels):
            builds = by_release.setdefault(build.version, [])
            on_pypi = any(known.wheels and known.local == build.local for known in builds)
            if not on_pypi or build == installed_build:
                builds.append(build)
    order = sorted(by_release, key=newest_first)
    installed = version(situation.torch.version) if situation.torch else None
    if installed is None or not allows(wanted, str(installed)):
        order.reverse()
    else:
        order = _nearest_first(order, Version(installed.public))
    for release in order:
        yield by_release[release]


def _nearest_first(releases: Sequence[str], to: Version) -> list[str]:
    """Sort ascending `releases`: `to` itself, then by how many minor releases lie between.

    Of two minors at the same distance the newer goes first, of each minor its newest release.
    """
    minors = sorted({Version(release).release[:2] for release in releases})
    at = bisect_left(minors, to.release[:2])
    between = 0 if to.release[:2] in minors[at : at + 1] else 1

    def distance(release: str) -> tuple[bool, int, bool]:
        place = minors.index(Version(release).release[:2])
        away = at - place if place < at else place - at + between
        return Version(release) != to, away, place < at

    descending = list(reversed(releases))
    return sorted(descending, key=distance)


def _tried(build: TorchBuild, situation: Situation) -> tuple[Situation, dict[str, Wheel]] | Reason:
    """Return `situation` as if `build` were installed, and its wheels; or why it cannot be."""
    if situation.torch is not None and build == situation.torch.build:
        kept = [situation.package(name) for name in (TORCH, *DOMAIN_LIBRARIES)]
        wheels = {
            wheel.name: kept_wheel(wheel, build, situation) for wheel in kept if wheel is not None
        }
        return situation, wheels
    wheels = {TORCH: wheel_of_torch(TORCH, build, build.version, build.wheels, situation)}
    for name in DOMAIN_LIBRARIES:
        if situation.package(name) is None:
            continue
        companion = matching_domain_library(name, build, situation)
        if companion is None:
            return reason("torch-without-companion", name=name)
        wheels[name] = wheel_of_torch(name, build, companion.version, companion.wheels, situation)
    for demand in refusing_release(wheels[TORCH].version, situation):
        return reason("demand-conflict", by=demand.by, requires=demand.of(TORCH))
    replaced = [Package(name=name, version=wheel.version) for name, wheel in wheels.items()]
    leaving = wheels.keys() | situation.moving_with_torch
    staying = [package for package in situation.facts.packages if package.name not in leaving]
    facts = situation.facts._replace(packages=(*staying, *replaced))
    return changed(situation, facts=facts), wheels


def why_torch(situation: Situation, choice: TorchChoice | None) -> Iterator[Reason]:
    """Yield why the torch of `choice` was chosen."""
    if choice is None:
        return
    name, cuda = f"{TORCH} {choice.torch.version}", major(choice.build.cuda)
    if choice.torch not in choice.install:
        yield reason("why-torch-kept", torch=name, cuda=cuda)
    elif situation.torch is None:
        yield reason("why-torch-newest", torch=name, cuda=cuda)
    else:
        yield reason("why-torch-nearest", torch=name, cuda=cuda, before=situation.torch.name)


def _choice(
    build: Build, situation: Situation, with_torch: Situation, wheels: dict[str, Wheel]
) -> TorchChoice:
    intact = {
        (package.name, package.version) for package in situation.facts.packages if package.intact
    }
    chosen = tuple(wheel for _, wheel in sorted(wheels.items()))
    install = tuple(wheel for wheel in chosen if (wheel.name, wheel.version) not in intact)
    return TorchChoice(situation=with_torch, build=build, wheels=chosen, install=install)
