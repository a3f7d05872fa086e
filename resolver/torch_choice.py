"""Choose a torch: the release, the CUDA and the index that fit machine and onnxruntime-gpu.

Core. The rules are those of a torch that stays: each build is tried as if it were installed. The
release comes first: the one that is installed if any of its builds fits, else the nearest that
does. Then the onnxruntime-gpu: the installed one if it works, else the newest that does with a
build of that release. Then the build (`torch_rule.preference`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from .facts import Package
from .matrix import Build
from .plan import PYPI, Reason, Rejected, Wheel, reason
from .situation import Situation, situation
from .torch_builds import COMPANIONS, TORCH, Companion, PypiWheel, TorchBuild
from .torch_rule import against_machine, preference
from .versions import allows, major, newest_first, version

Works = Callable[[Build, Situation], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A torch, and the environment with it."""

    there: Situation
    """As if it were installed already."""
    build: Build
    """The onnxruntime-gpu that goes with it."""
    wheels: tuple[Wheel, ...]
    """torch, torchaudio and torchvision of the set, what is kept included."""
    install: tuple[Wheel, ...]
    leaving: tuple[str, ...]
    """Canonical names of what only the torch before it needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What came of looking for a torch."""

    choice: Choice | None
    rejected: tuple[Rejected, ...]
    """The builds that were passed over on the way, with the reason."""


def is_asked_for(here: Situation) -> bool:
    """Tell whether the wishes let torch be chosen, and there is one to choose."""
    wish = here.wishes.torch
    return wish != "keep" and (wish != "match" or here.torch is not None)


def without_torch(here: Situation) -> Situation:
    """Return `here` without torch and what goes with it: more works there than with any torch."""
    staying = [row for row in here.facts.packages if row.name not in {TORCH, *COMPANIONS}]
    return situation(replace(here.facts, packages=tuple(staying)), here.wishes, here.matrix)


def search(here: Situation, builds: Sequence[Build], works: Works) -> Search:
    """Return the torch to take for the first of `builds` that it works with.

    `builds` are of onnxruntime-gpu, the best first; `works` tells whether nothing speaks against
    one of them in a situation.
    """
    rejected: list[Rejected] = []
    for release in _releases(here):
        able: list[tuple[TorchBuild, Situation, dict[str, Wheel]]] = []
        for build in sorted(release, key=lambda build: preference(build, here)):
            tried = _tried(build, here)
            if isinstance(tried, Reason):
                rejected.append(_rejection(build, tried))
            else:
                able.append((build, *tried))
        for wanted in builds if able else ():
            for _, there, wheels in able:
                if works(wanted, there):
                    return Search(
                        choice=_choice(wanted, here, there, wheels), rejected=tuple(rejected)
                    )
        rejected += [_rejection(build, reason("torch-without-partner")) for build, _, _ in able]
    return Search(choice=None, rejected=tuple(rejected))


def _rejection(build: TorchBuild, why: Reason) -> Rejected:
    return Rejected(package=TORCH, version=build.name, reasons=(why,))


def _releases(here: Situation) -> Iterator[list[TorchBuild]]:
    """Yield the builds of each release that is wished for, the nearest release first."""
    wish = here.wishes.torch
    wanted = SpecifierSet("" if wish == "match" else wish)
    labelled = "+" in wish
    own = here.torch.build if here.torch else None
    by_release: dict[str, list[TorchBuild]] = {}
    for build in here.matrix.torch.of(here.platform):
        # Who names the label of PyTorch's own index wants the build from there.
        if build.cuda and allows(wanted, build.name) and not (labelled and build.wheels):
            rows = by_release.setdefault(build.version, [])
            if not any(row.wheels and row.local == build.local for row in rows) or build == own:
                rows.append(build)
    order = sorted(by_release, key=newest_first)
    installed = version(here.torch.version) if here.torch else None
    if installed is None or (wish != "match" and not allows(wanted, str(installed))):
        order.reverse()
    else:
        order = _nearest_first(order, Version(installed.public))
    for release in order:
        yield by_release[release]


def _nearest_first(releases: Sequence[str], to: Version) -> list[str]:
    """Sort ascending `releases` by how many lie between; of two as near the newer comes first."""
    at = bisect_left([Version(release) for release in releases], to)
    there = at < len(releases) and Version(releases[at]) == to

    def distance(place: int) -> tuple[int, int]:
        away = place - at if place >= at else at - place
        return (away if there or place < at else away + 1), -place

    return [releases[place] for place in sorted(range(len(releases)), key=distance)]


def _tried(build: TorchBuild, here: Situation) -> tuple[Situation, dict[str, Wheel]] | Reason:
    """Return `here` as if `build` were installed and the wheels for that, or why it cannot be."""
    refusal = against_machine(build, here)
    if refusal is not None:
        return refusal
    if here.torch is not None and build == here.torch.build:
        kept = [here.facts.package(name) for name in (TORCH, *COMPANIONS)]
        wheels = {row.name: _kept(row, build, here) for row in kept if row is not None}
        return here, wheels
    wheels = {TORCH: _wheel(TORCH, build, build.version, build.wheels, here)}
    for name in COMPANIONS:
        if here.facts.package(name) is None:
            continue
        companion = _paired(name, build, here)
        if companion is None:
            return reason("torch-without-companion", name=name)
        wheels[name] = _wheel(name, build, companion.version, companion.wheels, here)
    for demand in here.demanded(TORCH):
        if demand.by.partition(" ")[0] not in wheels and not allows(
            demand.specifier, wheels[TORCH].version
        ):
            return reason("demand-conflict", by=demand.by, requires=f"{TORCH}{demand.specifier}")
    replaced = [Package(name=name, version=row.version) for name, row in wheels.items()]
    staying = [row for row in here.facts.packages if row.name not in wheels]
    facts = replace(here.facts, packages=(*staying, *replaced))
    return situation(facts, here.wishes, here.matrix), wheels


def _paired(name: str, build: TorchBuild, here: Situation) -> Companion | None:
    """Return the release of the companion `name` that was made for `build`.

    The one that requires this torch exactly; else the newest that allows it and was made with a
    release of torch for the same CUDA: the index has it for no other.
    """
    rows = [
        row
        for row in here.matrix.torch.companions
        if row.name == name
        and row.platform == here.platform
        and allows(row.torch, build.version)
        and any(wheel.python in {here.abi, "py3"} for wheel in row.wheels)
    ]
    rows.sort(key=lambda row: newest_first(row.version), reverse=True)
    exact = [row for row in rows if any(each.operator == "==" for each in row.torch)]
    return next(
        (row for row in (*exact, *rows) if row in exact or build.local in _made_for(row, here)),
        None,
    )


def _made_for(companion: Companion, here: Situation) -> set[str]:
    """Return the labels of the torch release that a companion without an exact pin was made with.

    torchvision names it as the oldest it takes, torchaudio has its number.
    """
    made = next((each.version for each in companion.torch), companion.version)
    minor = made.rpartition(".")[0]
    builds = here.matrix.torch.of(here.platform)
    return {build.local for build in builds if build.version.rpartition(".")[0] == minor}


def _wheel(
    name: str, build: TorchBuild, release: str, wheels: Sequence[PypiWheel], here: Situation
) -> Wheel:
    """Return the wheel of torch or a companion: PyPI's, or what the index for its CUDA has."""
    on_pypi = next((row for row in wheels if row.python in {here.abi, "py3"}), None)
    if build.wheels and on_pypi is not None:
        return Wheel(
            name=name,
            version=release,
            index=PYPI,
            file=on_pypi.file,
            size=on_pypi.size,
            sha256=on_pypi.sha256,
        )
    return _from_index(name, f"{release}+{build.local}", build.local, here)


def _from_index(name: str, release: str, label: str, here: Situation) -> Wheel:
    index = f"{here.wishes.torch_index.rstrip('/')}/{label}"
    return Wheel(name=name, version=release, index=index, file="", size=0, sha256="")


def _kept(package: Package, build: TorchBuild, here: Situation) -> Wheel:
    """Return the wheel of what is installed and stays."""
    if "+" in package.version:
        return _from_index(package.name, package.version, package.version.partition("+")[2], here)
    wheels: Sequence[PypiWheel] = build.wheels
    if package.name != TORCH:
        wheels = next(
            (
                row.wheels
                for row in here.matrix.torch.companions
                if (row.name, row.version, row.platform)
                == (package.name, package.version, here.platform)
            ),
            (),
        )
    row = next((row for row in wheels if row.python in {here.abi, "py3"}), None)
    return Wheel(
        name=package.name,
        version=package.version,
        index=PYPI,
        file=row.file if row else "",
        size=row.size if row else 0,
        sha256=row.sha256 if row else "",
    )


def _choice(build: Build, here: Situation, there: Situation, wheels: dict[str, Wheel]) -> Choice:
    before = {package.name: package for package in here.facts.packages}
    moving = tuple(
        wheel
        for name, wheel in sorted(wheels.items())
        if name not in before or before[name].version != wheel.version or not before[name].intact
    )
    return Choice(
        there=there,
        build=build,
        wheels=tuple(wheel for _, wheel in sorted(wheels.items())),
        install=moving,
        leaving=tuple(sorted(_orphans(here, there))) if moving else (),
    )


def _orphans(here: Situation, there: Situation) -> Iterator[str]:
    """Yield NVIDIA's wheels that torch alone required, for a CUDA major that it leaves.

    They would own files that wheels for the other major need, or lie there unused.
    """
    before, after = here.torch, there.torch
    package = here.facts.package(TORCH)
    if (
        before is None
        or after is None
        or package is None
        or before.cuda is None
        or after.cuda is None
        or major(before.cuda) == major(after.cuda)
    ):
        return
    own = {
        f"{row.name} {row.version}" for row in (package, here.facts.package("cuda-toolkit")) if row
    }
    for name, demands in here.demands.items():
        if (
            name.startswith("nvidia-")
            and here.facts.package(name) is not None
            and {demand.by for demand in demands} <= own
        ):
            yield name
