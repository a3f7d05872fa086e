"""Drift: whether a lock still holds for a machine, and what has changed since it was written.

The rules judge exactly the packages of the lock. Every pin and hash that the matrix knows is
compared with the matrix, and what is installed with the pins. A new plan shows what newer releases
or another driver would change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...facts.markers import marker_environment
from ...facts.model import CPU_BUILD, GPU_BUILD, Facts
from ...lock.locked_facts import names_in_locks, without_locked_packages
from ...matrix.model import Matrix
from ...matrix.torch import DOMAIN_LIBRARIES, TORCH
from ...plan.model import Unlock
from ...plan.reasons import Reason, reason
from ...resolve.onnxruntime_installed import with_installed_owners
from ...resolve.options import PlanOptions
from ...resolve.resolver import resolve
from ...versions import newest_first
from .against import KnownWheels, known_wheels, release_of, spelled, why_not
from .parsed_lock import ParsedLock, ParsedPin

DriftVerdict = Literal["holds", "drifted", "impossible"]
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line of the lock that differs from the matrix."""

    line: int
    why: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPin:
    """A pin that the environment does not match."""

    name: str
    locked: str | None
    """None: the lock does not install it."""
    installed: str | None
    """None: it is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What a lock is worth on a machine."""

    verdict: DriftVerdict
    release: ParsedPin | None
    """The build of onnxruntime that the lock installs on this machine; None: it has none for it."""
    differences: tuple[Difference, ...]
    against: tuple[Reason, ...]
    """Why the packages cannot work on this machine."""
    moved: tuple[MovedPin, ...]
    newest: str | None
    """The newest release that works on this machine, where it is newer than the locked one."""
    unlock: tuple[Unlock, ...]
    """What would allow a newer one."""
    matrix_moved: bool
    """The lock was made with another matrix."""
    compared: bool = True
    """It was compared with what is installed, too."""
    machine: Facts | None = None
    """The machine of the lock's header that stands for one without a GPU."""


def drift(
    locked: ParsedLock,
    facts: Facts,
    options: PlanOptions,
    matrix: Matrix,
    *,
    installed: bool = True,
) -> Drift:
    """Compare a lock with the machine of `facts`, and, if asked, with what is `installed` there."""
    environment = marker_environment(facts)
    known = known_wheels(matrix)
    every = spelled(locked.pins, known)
    pins = [pin for pin in every if pin.applies(environment)]
    release = release_of(pins)
    differences = tuple(_differences(every, known))
    bare = without_locked_packages(facts, matrix, names_in_locks(matrix))
    against = why_not((*every, *locked.loose), known, facts, options, matrix)
    moved = tuple(_moved(pins, facts, with_installed_owners(facts, matrix))) if installed else ()
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
        compared=installed,
    )


def _differences(pins: Sequence[ParsedPin], known: KnownWheels) -> Iterator[Difference]:
    """Yield broken hashes, and the versions and hashes that the matrix should know and does not."""
    # Other indexes have builds of torch that the matrix has no hash of.
    names = {name for name, _ in known} - {TORCH, *DOMAIN_LIBRARIES}
    hashed = any(pin.hashes for pin in pins)
    for pin in pins:
        name, version = pin.name, pin.version
        broken = [entry for entry in pin.hashes if not _SHA256.fullmatch(entry.sha256)]
        lines = [pin.line] if hashed and not pin.hashes else [entry.line for entry in broken]
        why = reason("lock-hash-broken", distribution=name, version=version)
        yield from (Difference(line=line, why=why) for line in lines)
        wheels = known.get((name, version))
        if wheels is None and name in names:
            why = reason("lock-version-unknown", distribution=name, version=version)
            yield Difference(line=pin.line, why=why)
        for entry in pin.hashes:
            if wheels is not None and entry not in broken and entry.sha256 not in wheels:
                sha256 = entry.sha256
                why = reason("lock-hash-unknown", distribution=name, version=version, sha256=sha256)
                yield Difference(line=entry.line, why=why)


def _moved(pins: Sequence[ParsedPin], facts: Facts, matrix: Matrix) -> Iterator[MovedPin]:
    """Yield what is missing, installed in another version, or installed and not in the lock."""
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
