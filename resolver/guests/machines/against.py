"""What speaks against a lock on a machine: its set, its hashes, and what it installs besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version

from ...facts.markers import marker_environment
from ...facts.model import CPU_BUILD, GPU_BUILD, Facts, Package
from ...lock.locked_facts import names_in_locks, without_locked_packages
from ...matrix.model import Matrix
from ...matrix.torch import TORCH
from ...plan.reasons import Named, Reason, RequirementLine, reason
from ...resolve.environment import consequences
from ...resolve.onnxruntime_installed import with_installed_owners
from ...resolve.options import PlanOptions
from ...resolve.resolver import resolve
from ...resolve.situation import Situation, situation_of
from .common_facts import has_gpu
from .parsed_lock import ParsedPin

_Place = tuple[str, str | None]
"""Platform and ABI tag of a wheel; None: it fits every Python."""
LACKS = "lock-lacks"
"""The code of a reason: what the packages need, and the lock does not install."""
KnownWheels = dict[tuple[str, str], dict[str, set[_Place]]]
"""What each wheel is for, by its hash, by name and version of the distribution."""


def release_of(pins: Iterable[ParsedPin]) -> ParsedPin | None:
    """Return the build of onnxruntime that counts; None where none is among `pins`."""
    by_name = {pin.name: pin for pin in pins}
    return by_name.get(GPU_BUILD) or by_name.get(CPU_BUILD)


def spelled(pins: Iterable[ParsedPin], known: KnownWheels) -> list[ParsedPin]:
    """Return `pins` with the versions as the matrix spells them: 1.26 is 1.26.0."""
    spellings = {(name, canonicalize_version(text)): text for name, text in known}

    def spelling(pin: ParsedPin) -> str:
        return spellings.get((pin.name, canonicalize_version(pin.version)), pin.version)

    return [replace(pin, version=spelling(pin)) for pin in pins]


def why_not(
    pins: Sequence[ParsedPin],
    known: KnownWheels,
    facts: Facts,
    options: PlanOptions,
    matrix: Matrix,
) -> tuple[Reason, ...]:
    """Return why exactly what `pins` install cannot work on the machine of `facts`.

    Of what they leave open, that counts of which no other one names the version.
    """
    environment = marker_environment(facts)
    every = [pin for pin in pins if pin.applies(environment)]
    pins = [pin for pin in every if pin.exact]
    pinned = {pin.name for pin in pins}
    free = [pin for pin in every if pin.name not in pinned]
    bare = without_locked_packages(facts, matrix, names_in_locks(matrix))
    situation = situation_of(facts, PlanOptions(), matrix)
    refused = tuple(_twice(pins)) or (
        *_against_packages(pins, bare, options, matrix),
        *_rivals(pins, free, bare, environment, matrix),
        *_without_wheel(pins, known, situation),
    )
    return refused or tuple(_broken(pins, situation))


def _twice(pins: Sequence[ParsedPin]) -> Iterator[Reason]:
    """Yield what is pinned at two versions, as after a merge; of hashes, pip and uv refuse that."""
    versions: dict[str, dict[str, None]] = {}
    for pin in pins:
        if pin.hashes:
            versions.setdefault(pin.name, {})[pin.version] = None
    for name, several in versions.items():
        if len(several) > 1:
            yield reason("lock-twice", distribution=name, versions=tuple(several))


def _rivals(
    pins: Sequence[ParsedPin],
    free: Sequence[ParsedPin],
    facts: Facts,
    environment: Mapping[str, str],
    matrix: Matrix,
) -> Iterator[Reason]:
    """Yield the other builds of onnxruntime beside that for the GPU: they share its folder."""
    packages = tuple(Package(name=pin.name, version=pin.version) for pin in pins)
    owners = with_installed_owners(facts._replace(packages=packages), matrix).owners
    if any(pin.name == GPU_BUILD for pin in pins):
        for pin in (*pins, *free):
            if pin.name in owners - {GPU_BUILD} and pin.is_sure(environment):
                yield reason("lock-rival", distribution=Named(pin.name, pin.version))


def _broken(pins: Sequence[ParsedPin], situation: Situation) -> Iterator[Reason]:
    """Yield who is installed and would miss what it requires once `pins` are."""
    coming = [Package(name=pin.name, version=pin.version) for pin in pins]
    for one in consequences(situation.environment, (), coming).unmet:
        by = Named(one.by, one.version)
        yield reason("lock-breaks", by=by, requires=one.text, found=one.found or "-")


def _against_packages(
    pins: Sequence[ParsedPin], facts: Facts, options: PlanOptions, matrix: Matrix
) -> tuple[Reason, ...]:
    """Return why exactly the packages of `pins` cannot work on the machine of `facts`."""
    release = release_of(pins)
    if release is None:
        system = f"{facts.platform.system} {facts.platform.machine}"
        return (reason("lock-not-for", system=system, python=facts.python.version),)
    if release.name == CPU_BUILD:
        situation = situation_of(facts, options, matrix)
        return (reason("lock-cpu-only", version=release.version),) if has_gpu(situation) else ()
    lines = tuple(
        RequirementLine(text, text)
        for pin in pins
        if pin.name not in matrix.owners
        for text in [f"{pin.name}=={pin.version}"]
    )
    exactly = options._replace(
        onnxruntime=f"=={release.version}",
        requirements=(*options.requirements, *lines),
    )
    plan = resolve(_with_torch(facts, pins), exactly, matrix)
    if plan.verdict == "impossible":
        rejected = {rejection.version: rejection.reasons for rejection in plan.rejected}
        unknown = (reason("lock-release-unknown", version=release.version),)
        return rejected.get(release.version, unknown)
    held = {pin.name for pin in pins}
    needed = [wheel.name for wheel in plan.selection if wheel.name in matrix.distributions]
    if any(pin.hashes for pin in pins):  # then pip and uv install nothing that is not pinned
        needed += (canonicalize_name(Requirement(line).name) for line in plan.requires)
    return tuple(reason("lock-lacks", distribution=name) for name in needed if name not in held)


def _with_torch(facts: Facts, pins: Sequence[ParsedPin]) -> Facts:
    """Return `facts` with the torch of the lock instead of the installed one."""
    locked = [Package(name=pin.name, version=pin.version) for pin in pins if pin.name == TORCH]
    if not locked:
        return facts
    others = tuple(package for package in facts.packages if package.name != TORCH)
    return facts._replace(packages=(*others, *locked))


def _without_wheel(
    pins: Sequence[ParsedPin], known: KnownWheels, situation: Situation
) -> Iterator[Reason]:
    """Yield the pins whose known wheels are all for other systems and Pythons."""
    place: _Place = situation.platform, situation.abi
    for pin in pins:
        wheels = known.get((pin.name, pin.version), {})
        places = [wheels.get(entry.sha256, {place}) for entry in pin.hashes]  # unknown: may fit
        if places and not set().union(*places) & {place, (situation.platform, None)}:
            yield reason(
                "lock-hash-missing",
                distribution=pin.name,
                version=pin.version,
                platform=situation.platform,
                python=situation.abi,
            )


def known_wheels(matrix: Matrix) -> KnownWheels:
    """Return what each wheel that `matrix` holds is for."""
    known: KnownWheels = {}

    def add(name: str, version: str, sha256: str, place: _Place) -> None:
        known.setdefault((name, version), {}).setdefault(sha256, set()).add(place)

    for build in matrix.builds:
        for wheel in build.wheels:
            add(GPU_BUILD, build.version, wheel.sha256, (build.platform, wheel.python))
    releases = [release for kind in matrix.distributions.values() for release in kind.releases]
    for row in (*releases, *matrix.msvc):
        add(row.name, row.version, row.sha256, (row.platform, row.python))
    for torch in matrix.torch.builds:
        for file in torch.wheels:
            add(TORCH, torch.version, file.sha256, (torch.platform, file.python))
    for library in matrix.torch.companions:
        for file in library.wheels:
            python = None if file.python == "py3" else file.python
            add(library.name, library.version, file.sha256, (library.platform, python))
    return known
