"""Choose the nvidia wheels for a build of onnxruntime-gpu.

The wheels are those of the toolkit release that the provider was built with, in its newest
patch; of a newer one only where a GPU or a missing wheel needs it. cuDNN is the newest of the right
major with machine code for every GPU. What is installed and works, or is pinned by something that
stays (torch), is kept as it is.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..matrix.lookup import code_of, libraries_of
from ..matrix.model import Build, Distribution, LibraryNeed, Release, ToolkitRelease
from ..plan.reasons import Reason, reason
from ..versions import allows, at_least, newest_first, numbers, requirement
from .release_checks import glibc_suffices, gpu_without_code
from .situation import Demand, Situation


class Component(NamedTuple):
    """A distribution beside onnxruntime-gpu in the set."""

    release: Release
    installed: bool
    """It is there already, in this version and whole."""


class Components(NamedTuple):
    """The distributions for a build, or why there are none."""

    chosen: tuple[Component, ...]
    reasons: tuple[Reason, ...]
    pinned: bool = False
    """A reason lies in what stays installed: it is the same with every toolkit release."""


Picked = dict[tuple[str, str | None, tuple[LibraryNeed, ...]], Component | Reason]
"""What `_pick` returned in one situation, by the name of the distribution, the version, and what is
needed of it. Most builds need the same."""


def choose_nvidia_wheels(
    build: Build, here: Situation, *, first_failure_only: bool = False, picked: Picked | None = None
) -> Components:
    """Return the nvidia wheels for `build`, or the reasons why no toolkit release gives them.

    The reasons are those of the toolkit release that fails on the fewest wheels;
    `first_failure_only` ends at the first that shows that none can do. What is `picked` is not
    looked for again, and added to.
    """
    attempts: list[Components] = []
    picked = {} if picked is None else picked
    for toolkit in toolkits_to_try(build, here):
        attempt = _choose_from(toolkit, build, here, picked)
        if not attempt.reasons:
            return attempt
        attempts.append(attempt)
        if first_failure_only and attempt.pinned:
            break
    if not attempts:
        return Components(
            chosen=(), reasons=(reason("toolkit-unknown", cuda=build.cuda, version=build.version),)
        )
    return min(attempts, key=lambda attempt: len(attempt.reasons))


def toolkits_to_try(build: Build, here: Situation) -> Iterator[ToolkitRelease]:
    """Yield the toolkit releases to try: its own, newest patch first, then newer ones."""
    built = numbers(build.cuda)[:2]
    usable = [
        toolkit
        for toolkit in here.matrix.toolkits
        if numbers(toolkit.version)[0] == built[0] and numbers(toolkit.version)[:2] >= built
    ]
    for minor in sorted({numbers(toolkit.version)[:2] for toolkit in usable}):
        patches = [toolkit for toolkit in usable if numbers(toolkit.version)[:2] == minor]
        yield from sorted(patches, key=lambda toolkit: numbers(toolkit.version), reverse=True)


def _choose_from(
    toolkit: ToolkitRelease, build: Build, here: Situation, known: Picked
) -> Components:
    chosen: dict[str, Component] = {}
    reasons: list[Reason] = []
    final = False
    waiting = sorted({need.distribution for need in build.needs if need.distribution})
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        distribution = here.matrix.distributions.get(name)
        if distribution is None:  # a wheel requires something that the matrix does not follow
            continue
        pinned = _is_pinned(distribution, here)
        version = None if pinned else toolkit.components.get(name)
        needs = needs_of(build, name)
        key = name, version, needs
        if key not in known:
            known[key] = _pick(distribution, version, needs, here)
        picked = known[key]
        if isinstance(picked, Reason):
            reasons.append(picked)
            final = final or pinned
            continue
        chosen[name] = picked
        waiting.extend(required_distributions(picked.release, distribution, here))
    return Components(
        chosen=tuple(chosen[name] for name in sorted(chosen)),
        reasons=tuple(reasons),
        pinned=final,
    )


def needs_of(build: Build, name: str) -> tuple[LibraryNeed, ...]:
    """Return what `build` needs of the distribution `name`: nothing else of it counts there."""
    return tuple(need for need in build.needs if need.distribution == name)


def required_distributions(
    release: Release, distribution: Distribution, here: Situation
) -> Iterator[str]:
    """Yield the distributions that `release` needs: those it names, links, and loads later."""
    for text in release.requires:
        wanted = requirement(text)
        if wanted is not None and is_in_force(wanted, here.markers, ""):
            yield canonicalize_name(wanted.name)
    contents = libraries_of(distribution, release)
    if contents is not None:
        for library in (*contents.links, *contents.loads):
            provider = here.matrix.providers.get((distribution.cuda, library))
            if provider is not None:
                yield provider


def _pick(
    distribution: Distribution, wanted: str | None, needs: Sequence[LibraryNeed], here: Situation
) -> Component | Reason:
    """Return the release of `distribution` to use, or why there is none.

    `wanted` is the version that the toolkit names; None where it names none, or where something
    that stays has the say.
    """
    name = distribution.name
    releases = [row for row in distribution.releases if row.platform == here.platform]
    if not releases:
        return reason("library-no-wheel", distribution=name)
    demands = here.demanded(name)
    allowed = _allowed(demands, releases)
    if not allowed:
        return reason(
            "library-pinned", distribution=name, by=", ".join(demand.by for demand in demands)
        )
    installed = here.facts.package(name)
    if installed is not None and installed.intact:
        for row in allowed:
            if (
                row.version == installed.version
                and why_unusable(row, distribution, needs, here) is None
            ):
                return Component(release=row, installed=True)
    refusals: list[Reason] = []
    for row in releases_to_try(releases, allowed, wanted):
        refusal = why_unusable(row, distribution, needs, here)
        if refusal is None:
            return Component(release=row, installed=False)
        refusals.append(refusal)
    if not refusals:
        return reason("library-no-wheel", distribution=f"{name} {wanted}")
    # A refusal for a GPU says more than that the oldest releases lack a library altogether.
    return next((row for row in refusals if row.code == "library-no-gpu-code"), refusals[0])


def releases_to_try(
    releases: Sequence[Release], allowed: Sequence[Release], wanted: str | None
) -> list[Release]:
    """Return which of the `allowed` ones among `releases` to try, one after the other.

    Those of the version `wanted`, the toolkit's; all of them, newest first, where the toolkit names
    none or something that stays has the say.
    """
    if wanted is not None and len(allowed) == len(releases):
        return [row for row in allowed if row.version == wanted]
    return sorted(allowed, key=lambda row: newest_first(row.version), reverse=True)


def _is_pinned(distribution: Distribution, here: Situation) -> bool:
    """Tell whether what stays installed leaves less to choose than there is."""
    demands = here.demanded(distribution.name)
    if not demands:
        return False
    releases = [row for row in distribution.releases if row.platform == here.platform]
    return len(_allowed(demands, releases)) < len(releases)


def _allowed(demands: Iterable[Demand], releases: Sequence[Release]) -> Sequence[Release]:
    """Return the releases that all of `demands` allow."""
    specifiers = tuple(str(demand.specifier) for demand in demands)
    if not specifiers:
        return releases
    versions = _versions_allowed(tuple(row.version for row in releases), specifiers)
    return [row for row in releases if row.version in versions]


@functools.lru_cache(maxsize=1024)  # a pin is asked about again for every release it could stop
def _versions_allowed(versions: tuple[str, ...], specifiers: tuple[str, ...]) -> frozenset[str]:
    wanted = [SpecifierSet(text) for text in specifiers]
    return frozenset(each for each in versions if all(allows(one, each) for one in wanted))


def why_unusable(
    release: Release, distribution: Distribution, needs: Sequence[LibraryNeed], here: Situation
) -> Reason | None:
    """Return why `release` cannot serve here what is needed of it, or None."""
    named = f"{release.name} {release.version}"
    if not glibc_suffices(here, release.glibc):
        return reason("library-glibc", distribution=named, glibc=release.glibc or "")
    contents = libraries_of(distribution, release)
    for need in needs:
        if (
            contents is None
            or need.library not in contents.libraries
            or (need.since is not None and not at_least(release.version, need.since))
        ):
            return reason("library-lacks", distribution=named, library=need.library)
    code = code_of(distribution.code, release)
    gpu = code and gpu_without_code(code, release.name, here, ptx=_compiles(release, here))
    return reason("library-no-gpu-code", distribution=named, gpu=gpu) if gpu else None


def _compiles(release: Release, here: Situation) -> bool:
    """Tell whether the driver is as new as the toolkit that made the PTX in `release`."""
    made = [
        numbers(toolkit.version)[:2]
        for toolkit in here.matrix.toolkits
        if toolkit.components.get(release.name) == release.version
    ]
    return here.driver_cuda is None or not made or numbers(here.driver_cuda)[:2] >= min(made)
