"""Lock files: exact versions for all machines of a group, with the hash of every wheel.

The same machines, options, matrix and index give the same lock, byte for byte: its header names the
machines and the matrix, and no time. It is in English whatever the language of its writer, because
a team shares it. The formats are in `formats/`; `guests/machines` compares a lock with a machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..companions.contents import LIBRARIES
from ..errors import Error
from ..facts.model import Facts
from ..matrix.model import AddedRows
from ..messages.shells import PastedCommand
from ..plan.wheels import HERE, Pinned, read_hashes
from .machine_lines import machine_line
from .markers import MarkerPlace, marker_for, marker_place

PRELOAD_BROKEN = frozenset({"1.27.0"})
"""Releases whose preload_dlls() looks into the wrong folders."""
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]+")
"""What ends a line for one of those who read a lock, or moves a cursor. A file's name may hold it,
and what follows would be an instruction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTarget:
    """What is locked for the machines of one system and Python."""

    machines: tuple[tuple[str, Facts], ...]
    """Each with its name; the name is empty where there is only one."""
    facts: Facts
    """What they have in common."""
    chosen: tuple[Pinned, ...]
    """The wheels that the plan selects, and the companions that the lock contains. `url` is the
    address in the lock: of companions, and where the format has one, else empty."""
    closure: tuple[Pinned, ...]
    """The other distributions, as uv resolved them; a release may have several wheels."""
    ranges: tuple[str, ...]
    """What the closure was resolved from: `numpy>=1.21.6`."""
    libraries: tuple[str, ...] = ()
    """The folders of the libraries, from site-packages."""

    @property
    def where(self) -> MarkerPlace:
        """Return its place in markers."""
        return marker_place(self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The content of a lock, whatever the format."""

    distribution: str
    """`onnxruntime-gpu`, or `onnxruntime` for machines without a GPU."""
    version: str
    cuda: str | None
    """The CUDA major; None without a GPU."""
    python: str
    """The oldest Python that its wheels fit: `3.11`."""
    preload_dlls: bool
    """The release has `preload_dlls()`, which an application can call to load the libraries."""
    targets: tuple[LockTarget, ...]
    commands: tuple[PastedCommand, ...]
    """The command that made it, as each shell takes it."""
    matrix_date: str
    matrix_digest: str
    matrix_added: tuple[AddedRows, ...] = ()

    @property
    def places(self) -> tuple[MarkerPlace, ...]:
        """Return the places of its targets, sorted."""
        return tuple(sorted({target.where for target in self.targets}))

    @property
    def companions(self) -> tuple[str, ...]:
        """Return the names of the companions in the lock."""
        wheels = [pinned.wheel for target in self.targets for pinned in target.chosen]
        return tuple(sorted({wheel.name for wheel in wheels if wheel.index_url == HERE}))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """A wheel of a lock."""

    pinned: Pinned
    marker: str
    """Where this wheel is installed; empty: everywhere."""


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


def locked_distributions(
    lock: Lock,
    *,
    closure: bool = True,
    beside: Collection[MarkerPlace] = (),
    since: str | None = None,
) -> tuple[LockedDistribution, ...]:
    """Return what the lock installs, by name; without the `closure` only what was chosen.

    The markers distinguish the places of the lock, those in `beside`, and Pythons before `since`.
    Raises Error `lock-apart` where two targets differ that no marker can distinguish.
    """
    found: dict[tuple[str, str, str], dict[Pinned, set[MarkerPlace]]] = {}
    for target in lock.targets:
        names = {pinned.wheel.name for pinned in target.chosen}
        others = [pinned for pinned in target.closure if pinned.wheel.name not in names]
        for pinned in (*target.chosen, *(others if closure else ())):
            key = pinned.wheel.name, pinned.wheel.version, pinned.wheel.index_url
            found.setdefault(key, {}).setdefault(pinned, set()).add(target.where)
    everywhere = {*lock.places, *beside}
    versions: dict[tuple[str, MarkerPlace], str] = {}
    distributions: list[LockedDistribution] = []
    for (name, version, index), files in found.items():
        places = {place for held in files.values() for place in held}
        for place in sorted(places):
            other = versions.setdefault((name, place), version)
            if other != version:
                both = " and ".join(sorted((other, version)))
                raise Error("lock-apart", name=name, versions=both, place=place_text(place))
        distributions.append(
            LockedDistribution(
                name=name,
                version=version,
                index=index,
                marker=marker_for(places, everywhere, since),
                files=tuple(
                    LockedFile(pinned=pinned, marker=marker_for(places, everywhere, since))
                    for pinned, places in sorted(files.items(), key=lambda each: each[0].wheel.file)
                ),
            )
        )
    return tuple(sorted(distributions, key=lambda each: (each.name, each.version, each.index)))


def place_text(place: MarkerPlace) -> str:
    """Return a place for people: `linux x86_64, Python 3.11`."""
    system = "windows" if place.sys_platform == "win32" else place.sys_platform
    return f"{system} {place.platform_machine}, Python {place.python_version}"


def header(lock: Lock, install: Sequence[str], *, loaded: bool = False) -> str:
    """Return the comment lines at the top of a lock; `install` says how to install it.

    With `loaded`, the format itself makes sure that the libraries are found.
    """
    what = f"{lock.distribution} {lock.version}"
    lines = [
        f"{what} for CUDA {lock.cuda}, with all that it needs" if lock.cuda else what,
        *(f"made by{f' (in {shell})' if shell else ''}: {text}" for shell, text in lock.commands),
        *(machine_line(*machine) for target in lock.targets for machine in target.machines),
        f"matrix: {lock.matrix_date} {lock.matrix_digest}",
        *_read_hashes(lock),
        *install,
        *(_libraries(lock, loaded=loaded) if lock.cuda else ()),
    ]
    return "".join(f"# {_BREAKS.sub(' ', line)}\n" for line in lines)


def _read_hashes(lock: Lock) -> Iterator[str]:
    """Yield whose hash is the one that an index gave on the day on which it was read."""
    wheels = {pinned.wheel for target in lock.targets for pinned in target.chosen}
    for added, held in read_hashes(sorted(wheels), lock.matrix_added):
        listed = ", ".join(dict.fromkeys(f"{wheel.name} {wheel.version}" for wheel in held))
        yield f"hash as {added.index_url} gave it on {added.read}: {listed}"


def _libraries(lock: Lock, *, loaded: bool) -> Iterator[str]:
    """Yield where the companions are, and what the application must do to load the libraries."""
    if lock.companions:
        names = " and ".join(lock.companions)
        yield f"made by ortgpu-fix, taken from their address and never from an index: {names}"
    if loaded or LIBRARIES in lock.companions:
        return
    if lock.preload_dlls and lock.version not in PRELOAD_BROKEN:
        yield "the application: onnxruntime.preload_dlls() before its first session"
    else:
        yield "the application must load the libraries itself; `lock -d DIR` brings what does it"
