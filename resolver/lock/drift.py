"""Whether a lock still holds for a machine, and what has moved since it was written.

The rules are asked about exactly the set of the lock; every pin and hash that the matrix
knows is compared with it; what is installed is compared with the pins; and a plan made afresh says
what newer releases or another driver would change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..companions.contents import LIBRARIES
from ..facts.markers import marker_environment
from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, Package
from ..fleet.common_facts import has_gpu, without_installed_set
from ..matrix.model import Matrix
from ..matrix.torch import COMPANIONS, TORCH
from ..plan.model import Unlock
from ..plan.reasons import Reason, reason
from ..resolve.options import PlanOptions
from ..resolve.resolver import resolve
from ..resolve.situation import Situation, situation
from ..versions import newest_first
from .parse import ParsedLock, ParsedPin

DriftVerdict = Literal["holds", "drifted", "impossible"]
_SHA256 = re.compile(r"[0-9a-f]{64}")
_Place = tuple[str, str | None]
"""Platform and ABI tag of a wheel; None: it fits every Python."""
_Known = dict[tuple[str, str], dict[str, set[_Place]]]
"""What each wheel is for, by its hash, by name and version of the distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line of the lock that says something else than the matrix."""

    line: int
    why: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPin:
    """A pin that the environment does not match."""

    name: str
    locked: str | None
    """None: the lock does not want it there."""
    installed: str | None
    """None: it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The whole answer."""

    verdict: DriftVerdict
    release: ParsedPin | None
    """The build of onnxruntime that the lock installs here; None where it has none for here."""
    differences: tuple[Difference, ...]
    against: tuple[Reason, ...]
    """Why the set cannot work here."""
    moved: tuple[MovedPin, ...]
    newest: str | None
    """The newest release that works here now, where it is newer than the locked one."""
    unlock: tuple[Unlock, ...]
    """What would allow something newer still."""
    matrix_moved: bool
    """The lock was made with another matrix than this one."""


def drift(locked: ParsedLock, facts: Facts, options: PlanOptions, matrix: Matrix) -> Drift:
    """Compare a lock with the machine and the environment of `facts`."""
    environment = marker_environment(facts)
    pins = [pin for pin in locked.pins if pin.applies(environment)]
    release = _release(pins)
    known = _known(matrix)
    differences = tuple(_differences(locked.pins, known))
    bare = without_installed_set(facts, matrix)
    against = _against(pins, release, bare, options, matrix)
    against += tuple(_without_wheel(pins, known, situation(facts, PlanOptions(), matrix)))
    moved = tuple(_moved(pins, facts, matrix))
    now = resolve(bare, options._replace(latest=True), matrix)
    newest = now.release
    if release is None or newest is None or newest_first(newest) <= newest_first(release.version):
        newest = None
    verdict: DriftVerdict = (
        "impossible" if against else "drifted" if differences or moved else "holds"
    )
    return Drift(
        verdict=verdict,
        release=release,
        differences=differences,
        against=against,
        moved=moved,
        newest=newest,
        unlock=now.unlock,
        matrix_moved=locked.matrix_digest not in {None, matrix.digest},
    )


def _release(pins: Sequence[ParsedPin]) -> ParsedPin | None:
    found = {pin.name: pin for pin in pins}
    return found.get(GPU_BUILD) or found.get(CPU_BUILD)


def _differences(pins: Sequence[ParsedPin], known: _Known) -> Iterator[Difference]:
    """Yield what is no hash, and what the matrix does not know of the pins that it should know."""
    # Other indexes have builds of torch that the matrix has no hash of.
    names = {name for name, _ in known} - {TORCH, *COMPANIONS}
    hashed = any(pin.hashes for pin in pins)
    for pin in pins:
        broken = [one for one in pin.hashes if not _SHA256.fullmatch(one.sha256)]
        lines = [one.line for one in broken] if pin.hashes else [pin.line] if hashed else []
        why = reason("lock-hash-broken", distribution=pin.name, version=pin.version)
        yield from (Difference(line=line, why=why) for line in lines)
        name, version = pin.name, pin.version
        wheels = known.get((name, version))
        if wheels is None:
            if name in names:
                why = reason("lock-version-unknown", distribution=name, version=version)
                yield Difference(line=pin.line, why=why)
            continue
        for one in pin.hashes:
            if one not in broken and one.sha256 not in wheels:
                why = reason(
                    "lock-hash-unknown", distribution=name, version=version, sha256=one.sha256
                )
                yield Difference(line=one.line, why=why)


def _without_wheel(pins: Sequence[ParsedPin], known: _Known, here: Situation) -> Iterator[Reason]:
    """Yield the pins of which the lock has wheels, and none for this system and Python."""
    place: _Place = here.platform, here.abi
    for pin in pins:
        wheels = known.get((pin.name, pin.version), {})
        places = [wheels.get(one.sha256, {place}) for one in pin.hashes]  # or of nothing known
        if places and not set().union(*places) & {place, (here.platform, None)}:
            yield reason(
                "lock-hash-missing",
                distribution=pin.name,
                version=pin.version,
                platform=here.platform,
                python=here.abi,
            )


def _known(matrix: Matrix) -> _Known:
    """Return every wheel of the matrix."""
    known: _Known = {}

    def add(name: str, version: str, sha256: str, place: _Place) -> None:
        known.setdefault((name, version), {}).setdefault(sha256, set()).add(place)

    for build in matrix.builds:
        for wheel in build.wheels:
            add(GPU_BUILD, build.version, wheel.sha256, (build.platform, wheel.python))
    releases = [row for kind in matrix.distributions.values() for row in kind.releases]
    for row in (*releases, *matrix.msvc):
        add(row.name, row.version, row.sha256, (row.platform, row.python))
    for torch in matrix.torch.builds:
        for one in torch.wheels:
            add(TORCH, torch.version, one.sha256, (torch.platform, one.python))
    for beside in matrix.torch.companions:
        for one in beside.wheels:
            python = None if one.python == "py3" else one.python
            add(beside.name, beside.version, one.sha256, (beside.platform, python))
    return known


def _against(
    pins: Sequence[ParsedPin],
    release: ParsedPin | None,
    facts: Facts,
    options: PlanOptions,
    matrix: Matrix,
) -> tuple[Reason, ...]:
    """Return what speaks against exactly the set of `pins` on the machine of `facts`."""
    if release is None:
        system = f"{facts.platform.system} {facts.platform.machine}"
        return (reason("lock-not-for", system=system, python=facts.python.version),)
    if release.name == CPU_BUILD:
        here = situation(facts, options, matrix)
        return (reason("lock-cpu-only", version=release.version),) if has_gpu(here) else ()
    own = [pin for pin in pins if pin.name not in matrix.owners and pin.name != LIBRARIES]
    lines = tuple(f"{pin.name}=={pin.version}" for pin in own)
    exactly = options._replace(
        onnxruntime=f"=={release.version}",
        latest=False,
        requirements=(*options.requirements, *lines),
    )
    made = resolve(_with_torch(facts, pins), exactly, matrix)
    if made.verdict == "impossible":
        rejected = {row.version: row.reasons for row in made.rejected}
        gone = (reason("lock-release-unknown", version=release.version),)
        return rejected.get(release.version, gone)
    held = {pin.name for pin in pins}
    return tuple(
        reason("lock-lacks", distribution=wheel.name)
        for wheel in made.selection
        if wheel.name not in held and wheel.name in matrix.distributions
    )


def _with_torch(facts: Facts, pins: Sequence[ParsedPin]) -> Facts:
    """Return `facts` with the torch of the lock in the place of the one that is installed."""
    locked = [Package(name=pin.name, version=pin.version) for pin in pins if pin.name == TORCH]
    if not locked:
        return facts
    others = tuple(package for package in facts.packages if package.name != TORCH)
    return facts._replace(packages=(*others, *locked))


def _moved(pins: Sequence[ParsedPin], facts: Facts, matrix: Matrix) -> Iterator[MovedPin]:
    """Yield what is installed in another version than the lock's, is not there, or is too much."""
    locked = {pin.name: pin for pin in pins}
    for name, pin in sorted(locked.items()):
        installed = facts.package(name)
        if installed is None:
            yield MovedPin(name=name, locked=pin.version, installed=None)
        elif (
            newest_first(installed.version) != newest_first(pin.version)
            or not installed.intact
            or (name == CPU_BUILD and GPU_BUILD in locked and not installed.provided)
        ):
            yield MovedPin(name=name, locked=pin.version, installed=installed.version)
    for package in facts.packages:
        if package.name in matrix.owners and package.name not in locked and not package.provided:
            yield MovedPin(name=package.name, locked=None, installed=package.version)
