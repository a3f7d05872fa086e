"""Choose the nvidia wheels for a build of onnxruntime-gpu.

The wheels are those of the toolkit release that the provider was built with, in its newest
patch; of a newer one only where a GPU or a missing wheel needs it. cuDNN is the newest of the right
major with machine code for every GPU. An installed wheel that works, or that an installed package
(torch) pins, is kept.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..matrix.model import (
    INSTALLED,
    Build,
    Distribution,
    LibraryNeed,
    Release,
    ToolkitRelease,
    libraries_of,
    row_of,
)
from ..plan.reasons import Reason, Wanting, reason
from ..versions import allows, at_least, newest_first, numbers, requirement
from .consumers import holders
from .environment import Demand
from .gpu_code import gpu_without_code
from .release_checks import glibc_suffices
from .situation import Situation
from .torch_libraries import releases_in_torch


class Component(NamedTuple):
    """A distribution beside onnxruntime-gpu in the selection."""

    release: Release
    installed: bool
    """This version is already installed, and intact."""


class Components(NamedTuple):
    """The distributions for a build, or why there are none."""

    chosen: tuple[Component, ...]
    reasons: tuple[Reason, ...] = ()
    """Whatever is installed."""
    pinned: tuple[Reason, ...] = ()
    """By what is installed: without it there were some."""


Picked = dict[tuple[str, str | None, tuple[LibraryNeed, ...], bool], Component | Reason]
"""What `pick_release` returned, by name and version of the distribution, what is needed of it, and
whether an older one may stay: most builds need the same."""


class SharingMachines(NamedTuple):
    """The machines of one platform that a wheel has to serve: one, or several of a fleet."""

    each: tuple[Situation, ...]
    demands: Mapping[str, tuple[Demand, ...]]
    """By canonical name: what stays installed on any of them requires of it."""
    picked: Picked


def choose_nvidia_wheels(
    build: Build,
    situation: Situation,
    *,
    first_failure_only: bool = False,
    picked: Picked | None = None,
) -> Components:
    """Return the nvidia wheels for `build`, or the reasons why no toolkit release gives them.

    The reasons are those of the toolkit release that fails on the fewest wheels, and first of one
    that fails by what is installed alone;
    `first_failure_only` ends at the first that shows that none can do. `picked` is read and
    extended; use it for one situation only.
    """
    machines = SharingMachines((situation,), situation.demands, {} if picked is None else picked)
    attempts: list[Components] = []
    for toolkit in toolkits_to_try(build, situation):
        picks = dict(pick_all(toolkit, build, machines))
        failures = {name: pick for name, pick in picks.items() if isinstance(pick, Reason)}
        chosen = [pick for _, pick in sorted(picks.items()) if isinstance(pick, Component)]
        if not failures:
            return Components(tuple(chosen))
        held = {name for name in failures if _serves_alone(name, toolkit, build, machines)}
        attempts.append(
            Components(
                tuple(chosen),
                reasons=tuple(why for name, why in failures.items() if name not in held),
                pinned=tuple(why for name, why in failures.items() if name in held),
            )
        )
        pinned = any(
            _is_pinned(situation.matrix.distributions[name], machines) for name in failures
        )
        if first_failure_only and pinned:  # it fails so with every toolkit release
            break
    unknown = reason("toolkit-unknown", cuda=build.cuda, version=build.version)
    return min(
        attempts,
        key=lambda attempt: (len(attempt.reasons), len(attempt.pinned)),
        default=Components(chosen=(), reasons=(unknown,)),
    )


def _serves_alone(
    name: str, toolkit: ToolkitRelease, build: Build, machines: SharingMachines
) -> bool:
    """Return whether a release of `name` served `build` if nobody required anything of it."""
    if name not in machines.demands:
        return False
    alone = machines._replace(demands={}, picked={})
    distribution = machines.each[0].matrix.distributions[name]
    version = toolkit.components.get(name)
    return isinstance(pick_release(distribution, version, build, alone), Component)


def toolkits_to_try(build: Build, situation: Situation) -> Iterator[ToolkitRelease]:
    """Yield the toolkit releases to try: its own, newest patch first, then newer ones."""
    built = numbers(build.cuda)[:2]
    newest = sorted(
        situation.matrix.toolkits, key=lambda toolkit: numbers(toolkit.version), reverse=True
    )
    for toolkit in sorted(newest, key=lambda toolkit: numbers(toolkit.version)[:2]):
        minor = numbers(toolkit.version)[:2]
        if minor[0] == built[0] and minor >= built:
            yield toolkit


def pick_all(
    toolkit: ToolkitRelease,
    build: Build,
    machines: SharingMachines,
    held: Mapping[str, str | None] | None = None,
) -> Iterator[tuple[str, Component | Reason]]:
    """Yield the pick for each distribution that `build` or another pick needs, by name.

    A distribution of the toolkit is taken in the toolkit's version, unless something that stays
    does not allow that; `held` names versions that go before both.
    """
    situation = machines.each[0]
    waiting = sorted({need.distribution for need in build.needs if need.distribution})
    visited: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        distribution = situation.matrix.distributions.get(name)
        if name in visited or distribution is None:  # the matrix does not follow every requirement
            continue
        visited.add(name)
        version = held.get(name) if held else None
        if version is None:
            version = _toolkit_version(name, toolkit, build, machines)
        pick = pick_release(distribution, version, build, machines)
        yield name, pick
        if isinstance(pick, Component):
            waiting.extend(required_distributions(pick.release, distribution, situation))


def required_distributions(
    release: Release, distribution: Distribution, situation: Situation
) -> Iterator[str]:
    """Yield the distributions that `release` needs: those it names, links, and loads later."""
    for text in release.requires:
        wanted = requirement(text)
        if wanted is not None and is_in_force(wanted, situation.markers, ""):
            yield canonicalize_name(wanted.name)
    contents = libraries_of(distribution, release)
    for library in (*contents.links, *contents.loads) if contents else ():
        provider = situation.matrix.providers.get((distribution.cuda, library))
        if provider is not None:
            yield provider


def pick_release(
    distribution: Distribution, version: str | None, build: Build, machines: SharingMachines
) -> Component | Reason:
    """Return the release of `distribution` that serves `build` on all of `machines`, or why none.

    Only `version` counts where it is given, otherwise the newest that serves.
    """
    needs = tuple(need for need in build.needs if need.distribution == distribution.name)
    older = all(_older_may_stay(distribution, build, situation) for situation in machines.each)
    key = distribution.name, version, needs, older
    if key not in machines.picked:
        machines.picked[key] = _pick(distribution, version, needs, machines, older=older)
    return machines.picked[key]


def _older_may_stay(distribution: Distribution, build: Build, situation: Situation) -> bool:
    """Return whether a release older than the toolkit of `build` may stay if it has every symbol.

    Symbols are read from the files; whether it computes right with a build for a newer one nobody
    has tried. So it stays beside the onnxruntime-gpu that it was installed with, and where others
    use it; a build that is new here gets that of its own toolkit.
    """
    if not distribution.name.startswith("nvidia-cublas"):
        return True
    return situation.installed_release == build.version or bool(
        holders(distribution, situation.consumers)
    )


def _pick(
    distribution: Distribution,
    version: str | None,
    needs: Sequence[LibraryNeed],
    machines: SharingMachines,
    *,
    older: bool,
) -> Component | Reason:
    def refusal_of(release: Release) -> Reason | None:
        reasons = (
            _why_unusable(release, distribution, needs, situation) for situation in machines.each
        )
        return next(filter(None, reasons), None)

    name = distribution.name
    releases = _releases(distribution, machines)
    if not releases:
        return reason("library-no-wheel", distribution=name)
    demands = machines.demands.get(name, ())
    allowed = _allowed(demands, releases)
    if not allowed:
        return _why_none_is_allowed(name, demands, releases)
    installed = machines.each[0].package(name)
    fresh = installed is not None and (
        older or version is None or numbers(installed.version)[:2] >= numbers(version)[:2]
    )
    kept = installed.version if installed is not None and installed.intact and fresh else None
    preferred = [release for release in allowed if release.version == kept]
    preferred += _allowed(demands, [*releases_in_torch(distribution, needs, machines.each[0])])
    for release in preferred:
        if refusal_of(release) is None:
            return Component(release=release, installed=True)
    matching = [release for release in allowed if version in {None, release.version}]
    matching.sort(key=lambda release: newest_first(release.version), reverse=True)
    refusals: list[Reason] = []
    for release in matching:
        refusal = refusal_of(release)
        if refusal is None:
            return Component(release=release, installed=False)
        refusals.append(refusal)
    if not refusals:
        return reason("library-no-wheel", distribution=f"{name} {version}")
    # A refusal for a GPU says more than that the oldest releases lack a library altogether.
    return next(
        (release for release in refusals if release.code == "library-no-gpu-code"), refusals[0]
    )


def _why_none_is_allowed(
    name: str, demands: Sequence[Demand], releases: Sequence[Release]
) -> Reason:
    """Say who wants a release that is not known, or else who wants what the others exclude."""
    alone = [demand for demand in demands if not _allowed((demand,), releases)]
    if alone:
        by = tuple(demand.by for demand in alone)
        return reason("library-pinned", distribution=name, by=by)
    who = tuple(Wanting(demand.by, demand.of(name)) for demand in demands if demand.specifier)
    return reason("library-pins-differ", distribution=name, by=who)


def _releases(distribution: Distribution, machines: SharingMachines) -> list[Release]:
    platform = machines.each[0].platform
    return [release for release in distribution.releases if release.platform == platform]


def _toolkit_version(
    name: str, toolkit: ToolkitRelease, build: Build, machines: SharingMachines
) -> str | None:
    """Return the version in `toolkit`, or in the nearest newer one that what stays allows.

    None where it allows none of them: it pins another.
    """
    own = toolkit.components.get(name)
    specifiers = [demand.specifier for demand in machines.demands.get(name, ())]
    if not specifiers:
        return own
    newer = (toolkit.components.get(name) for toolkit in toolkits_to_try(build, machines.each[0]))
    return next(
        (
            version
            for version in (own, *newer)
            if version and all(allows(specifier, version) for specifier in specifiers)
        ),
        None,
    )


def usable_releases(
    distribution: Distribution,
    build: Build,
    machines: SharingMachines,
    order: Callable[[Release], int],
) -> Iterator[Release]:
    """Yield the releases of `distribution` that serve `build` on all of `machines`.

    By `order`, and of equal ones the newest first. One is judged when it is asked for.
    """
    needs = [need for need in build.needs if need.distribution == distribution.name]
    demands = machines.demands.get(distribution.name, ())
    releases = [*_allowed(demands, _releases(distribution, machines))]
    releases.sort(key=lambda release: newest_first(release.version), reverse=True)
    for release in sorted(releases, key=order):
        if not any(
            _why_unusable(release, distribution, needs, situation) for situation in machines.each
        ):
            yield release


def _is_pinned(distribution: Distribution, machines: SharingMachines) -> bool:
    """Return whether what stays installed excludes a release."""
    demands = machines.demands.get(distribution.name, ())
    releases = _releases(distribution, machines) if demands else []
    releases = [release for release in releases if release.index_url != INSTALLED]
    return len(_allowed(demands, releases)) < len(releases)


def _allowed(demands: Iterable[Demand], releases: Sequence[Release]) -> Sequence[Release]:
    specifiers = tuple(str(demand.specifier) for demand in demands)
    if not specifiers:
        return releases
    versions = _versions_allowed(tuple(release.version for release in releases), specifiers)
    return [release for release in releases if release.version in versions]


@functools.lru_cache(maxsize=1024)  # a pin is evaluated for every release
def _versions_allowed(versions: tuple[str, ...], specifiers: tuple[str, ...]) -> frozenset[str]:
    wanted = [SpecifierSet(text) for text in specifiers]
    return frozenset(
        version for version in versions if all(allows(specifier, version) for specifier in wanted)
    )


def _why_unusable(
    release: Release, distribution: Distribution, needs: Sequence[LibraryNeed], situation: Situation
) -> Reason | None:
    """Return why `release` lacks what is needed of it here, or None."""
    named = f"{release.name} {release.version}"
    if not glibc_suffices(situation, release.glibc):
        return reason("library-glibc", distribution=named, glibc=str(release.glibc))
    contents = libraries_of(distribution, release)
    for need in needs:
        exported = need.since is None or at_least(release.version, need.since)
        if contents is None or need.library not in contents.libraries or not exported:
            return reason("library-lacks", distribution=named, library=need.library)
    code = row_of(distribution.code, release)
    gpu = code and gpu_without_code(
        code, release.name, situation, ptx=_compiles(release, situation)
    )
    return reason("library-no-gpu-code", distribution=named, gpu=gpu) if gpu else None


def _compiles(release: Release, situation: Situation) -> bool:
    """Return whether the driver is as new as the toolkit that made the PTX in `release`."""
    toolkits = [
        numbers(toolkit.version)[:2]
        for toolkit in situation.matrix.toolkits
        if toolkit.components.get(release.name) == release.version
    ]
    return (
        situation.driver_cuda is None
        or not toolkits
        or numbers(situation.driver_cuda)[:2] >= min(toolkits)
    )


def rivals(name: str, situation: Situation) -> tuple[str, ...]:
    """Return the distributions that own the same files as `name`."""
    return tuple(
        other
        for owners in situation.matrix.shared.values()
        if name in owners
        for other in owners
        if other != name
    )
