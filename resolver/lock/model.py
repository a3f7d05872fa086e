"""A lock: exact versions for all machines of a group, with the hash of every wheel.

A lock is the same, byte for byte, for the same machines, wishes, matrix and index: its header
says which machines and which matrix, not when. It is in English whoever writes it, because a team
shares it. The formats are in `lock_requirements`, `lock_pylock`, `lock_uv` and `lock_dockerfile`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..companions.contents import LIBRARIES
from ..errors import Error
from ..facts.model import Facts
from ..plan.wheels import HERE, PYPI, Pinned
from .markers import MarkerPlace, marker_for, marker_place

PRELOAD_BROKEN = frozenset({"1.27.0"})
"""Releases whose preload_dlls() looks into the wrong folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTarget:
    """What is locked for the machines of one system and Python."""

    machines: tuple[tuple[str, Facts], ...]
    """Each with its name; empty where there is only one."""
    facts: Facts
    """What they have in common."""
    chosen: tuple[Pinned, ...]
    """The set that the plan selects, and the companions where they travel along. `url` is the
    address in the lock: of companions and where the format wants one, else empty."""
    closure: tuple[Pinned, ...]
    """The ordinary distributions beside it, as an engine resolved them; of a release there may be
    several wheels."""
    ranges: tuple[str, ...]
    """What the closure was resolved from: `numpy>=1.21.6`."""
    libraries: tuple[str, ...] = ()
    """The folders of the libraries, from site-packages."""

    @property
    def where(self) -> MarkerPlace:
        """Return what markers see of it."""
        return marker_place(self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Everything that is written, whatever the format."""

    distribution: str
    """`onnxruntime-gpu`, or `onnxruntime` for machines without a GPU."""
    version: str
    cuda: str | None
    """The CUDA major; None without a GPU."""
    preload_dlls: bool
    """The release can load its libraries when the application says so."""
    targets: tuple[LockTarget, ...]
    command: str
    """What made it."""
    matrix_date: str
    matrix_digest: str

    @property
    def places(self) -> tuple[MarkerPlace, ...]:
        """Return where the lock is for, in order."""
        return tuple(sorted({target.where for target in self.targets}))

    @property
    def companions(self) -> tuple[str, ...]:
        """Return the names of the companions that travel along."""
        found = (one.wheel for target in self.targets for one in target.chosen)
        return tuple(sorted({wheel.name for wheel in found if wheel.index_url == HERE}))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """A wheel of a lock."""

    pinned: Pinned
    marker: str
    """Where it is the one; empty: everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedDistribution:
    """One distribution at one version."""

    name: str
    version: str
    index: str
    """`pypi`, `here`, or the URL of the index that must serve it."""
    marker: str
    """Where it is installed; empty: everywhere."""
    files: tuple[LockedFile, ...]

    @property
    def direct(self) -> bool:
        """Tell whether it is named by its address and never looked up by its name."""
        return self.index != PYPI


def locked_distributions(
    lock: Lock, *, closure: bool = True, beside: Collection[MarkerPlace] = ()
) -> tuple[LockedDistribution, ...]:
    """Return what the lock installs, by name; without the `closure` only what was chosen.

    The markers tell the places of the lock apart, and from those that are `beside` them. Raises
    Error `lock-apart` where two targets that no marker can tell apart differ.
    """
    rows: dict[tuple[str, str, str], dict[Pinned, set[MarkerPlace]]] = {}
    for target in lock.targets:
        held = {one.wheel.name for one in target.chosen}
        ordinary = [one for one in target.closure if one.wheel.name not in held]
        for one in (*target.chosen, *(ordinary if closure else ())):
            key = one.wheel.name, one.wheel.version, one.wheel.index_url
            rows.setdefault(key, {}).setdefault(one, set()).add(target.where)
    everywhere = {*lock.places, *beside}
    _refuse_apart((key, _union(files.values())) for key, files in rows.items())
    return tuple(
        LockedDistribution(
            name=name,
            version=version,
            index=index,
            marker=marker_for(_union(files.values()), everywhere),
            files=tuple(
                LockedFile(pinned=one, marker=marker_for(places, everywhere))
                for one, places in sorted(files.items(), key=lambda row: row[0].wheel.file)
            ),
        )
        for (name, version, index), files in sorted(rows.items(), key=lambda row: row[0])
    )


def _union(sets: Iterable[Collection[MarkerPlace]]) -> set[MarkerPlace]:
    return {place for one in sets for place in one}


def _refuse_apart(rows: Iterable[tuple[tuple[str, str, str], set[MarkerPlace]]]) -> None:
    taken: dict[tuple[str, MarkerPlace], str] = {}
    for (name, version, _), places in rows:
        for place in sorted(places):
            other = taken.setdefault((name, place), version)
            if other != version:
                versions = " and ".join(sorted((other, version)))
                raise Error("lock-apart", name=name, versions=versions, place=place_text(place))


def place_text(place: MarkerPlace) -> str:
    """Return a place for people: `linux x86_64, Python 3.11`."""
    system = "windows" if place.sys_platform == "win32" else place.sys_platform
    return f"{system} {place.platform_machine}, Python {place.python_version}"


def header(lock: Lock, install: Sequence[str], *, loaded: bool = False) -> str:
    """Return what a lock says of itself, as comment lines; `install` says how it is installed.

    `loaded`: the format itself sees to it that the libraries are found.
    """
    what = f"{lock.distribution} {lock.version}"
    lines = [f"{what} for CUDA {lock.cuda}, with all that it needs" if lock.cuda else what]
    lines += [f"made by: {lock.command}"]
    lines += [
        f"for {_machine(name, facts)}" for target in lock.targets for name, facts in target.machines
    ]
    lines += [f"matrix: {lock.matrix_date} {lock.matrix_digest}", *install]
    if lock.cuda:
        lines += _libraries(lock, loaded=loaded)
    return "".join(f"# {line}\n" for line in lines)


def _libraries(lock: Lock, *, loaded: bool) -> list[str]:
    """Return who loads the libraries, and who stands in for onnxruntime."""
    made: list[str] = []
    if lock.companions:
        names = " and ".join(lock.companions)
        made = [f"made by ortgpu-fix, taken from their address and never from an index: {names}"]
    if loaded or LIBRARIES in lock.companions:
        return made
    if lock.preload_dlls and lock.version not in PRELOAD_BROKEN:
        need = "the application: onnxruntime.preload_dlls() before its first session"
    else:
        need = "the application must load the libraries itself; `lock -d DIR` brings what does it"
    return [*made, need]


def _machine(name: str, facts: Facts) -> str:
    """Return a machine on one line."""
    platform, driver = facts.platform, facts.driver
    system = [f"{platform.system} {platform.machine}", platform.libc]
    python = f"Python {facts.python.version}{'t' if facts.python.free_threaded else ''}"
    versions = [] if driver is None else [driver.version, driver.cuda and f"CUDA {driver.cuda}"]
    known = ", ".join(part for part in versions if part) or ("none" if driver is None else "?")
    gpus = sorted({gpu.compute_capability or "?" for gpu in facts.gpus or ()})
    seen = "?" if facts.gpus is None else ", ".join(gpus) or "none"
    parts = [", ".join(part for part in (*system, python) if part), f"driver {known}"]
    return f"{name + ': ' if name else ''}{'; '.join(parts)}; GPU {seen}"
