"""The nvidia wheels with the fewest bytes to download that are compatible by what was read of them.

An older release than that of the build's own toolkit may be taken where it exports every symbol
that the provider and the other libraries name, has code for every GPU (a compiler: compiles for
them), and no defect of it is known. The search is exact: it tries every set that can be smaller.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ..facts.model import GPU_BUILD
from ..matrix.model import DEFAULT_INDEX, Build, Defect, Floors, Release, row_of
from ..versions import allows, at_least
from .components import Component, SharingMachines, required_distributions, usable_releases
from .consumers import holders
from .gpu_code import capabilities

RUNTIME = "nvidia-cuda-runtime"
"""CUDA's runtime stays the usual one: it gets what the compiler of the build's toolkit made."""


class _Part(NamedTuple):
    """A release that may be selected."""

    component: Component
    bytes: int
    """To download: 0 where it is installed."""
    read: Floors | None
    """None: it is the usual one, and was not read."""
    requires: frozenset[str]
    """The distributions that it cannot do without."""


def smallest_components(
    build: Build, machines: SharingMachines, usual: Sequence[Component]
) -> tuple[Component, ...]:
    """Return the wheels for `build` with the fewest bytes; `usual` where none has fewer than that.

    What nobody has read (a release of `matrix --update`, another index) is taken only where it is
    usual, and so is what others that use CUDA here need without declaring it.
    """
    matrix = machines.each[0].matrix
    provider = row_of(matrix.read.get(GPU_BUILD, ()), build)
    if provider is None or build.index_url != DEFAULT_INDEX:
        return tuple(usual)
    search = _Search(build, machines, usual, provider)
    names = {need.distribution for need in build.needs if need.distribution}
    search.extend({}, names)
    return search.best


class _Search:
    """Branch and bound: the largest distribution is decided first, of each its smallest release.

    A large one that does not fit ends a branch before what is small has been tried below it.
    """

    def __init__(
        self, build: Build, machines: SharingMachines, usual: Sequence[Component], provider: Floors
    ) -> None:
        self.best = tuple(usual)
        self._bytes = sum(
            0 if component.installed else component.release.size for component in usual
        )
        self._build, self._machines, self._provider = build, machines, provider
        self._matrix = machines.each[0].matrix
        self._usual = {component.release.name: component.release.version for component in usual}
        self._parts: dict[str, tuple[list[_Part], Iterator[_Part]]] = {}

    def extend(self, chosen: Mapping[str, _Part], waiting: AbstractSet[str]) -> None:
        """Try every way to choose what is `waiting` that can have fewer bytes than the best."""
        total = sum(part.bytes for part in chosen.values())
        if not waiting:
            self.best = tuple(chosen[name].component for name in sorted(chosen))
            self._bytes = total
            return
        name, *rest = sorted(waiting, key=lambda one: (-self._least(one), one))
        others = sum(map(self._least, rest))
        for part in self._parts_of(name):
            if total + part.bytes + others >= self._bytes:
                break
            if all(self._agree(part, other) for other in chosen.values()):
                more = {**chosen, name: part}
                self.extend(more, {*rest, *part.requires} - more.keys())

    def _least(self, name: str) -> int:
        """Return the bytes of the smallest release of a distribution that may be taken."""
        first = next(self._parts_of(name), None)
        return first.bytes if first else self._bytes

    def _parts_of(self, name: str) -> Iterator[_Part]:
        """Yield the releases that may be taken, the smallest first, of equal ones the newest."""
        if name not in self._parts:
            distribution = self._matrix.distributions[name]
            releases = usable_releases(distribution, self._build, self._machines, self._size)
            self._parts[name] = [], filter(None, map(self._part, releases))
        found, others = self._parts[name]
        yield from found
        for part in others:
            found.append(part)
            yield part

    def _size(self, release: Release) -> int:
        """Return the bytes of `release` to download: none where it is installed."""
        package = self._machines.each[0].package(release.name)
        installed = package is not None and package.intact and package.version == release.version
        return 0 if installed else release.size

    def _part(self, release: Release) -> _Part | None:
        """Return `release` as a part of the selection, or None where it may not be taken."""
        situation, name = self._machines.each[0], release.name
        distribution = self._matrix.distributions[name]
        usual = self._usual.get(name)
        read = row_of(self._matrix.read.get(name, ()), release)
        held = name.startswith(RUNTIME) or any(
            holders(distribution, one.consumers) for one in self._machines.each
        )
        if release.version != usual and (read is None or (held and usual)):
            return None
        if _lacks(release, self._provider) or any(
            not defect.beside and _concerns(defect, release) for defect in self._matrix.defects
        ):
            return None
        if read is not None and read.targets:
            gpus = (gpu for one in self._machines.each for gpu in capabilities(one))
            if not all(gpu in read.targets for gpu in gpus):
                return None
        size = self._size(release)
        return _Part(
            component=Component(release=release, installed=size == 0),
            bytes=size,
            read=read,
            requires=frozenset(required_distributions(release, distribution, situation))
            & self._matrix.distributions.keys(),
        )

    def _agree(self, part: _Part, other: _Part) -> bool:
        """Return whether two releases have what they take of each other, and no defect together."""
        pair = (part, other), (other, part)
        return not any(
            (one.read and _lacks(beside.component.release, one.read))
            or _wrong_together(
                one.component.release, beside.component.release, self._matrix.defects
            )
            for one, beside in pair
        )


def _lacks(release: Release, read: Floors) -> bool:
    """Return whether `release` lacks a symbol that what was `read` takes of it."""
    floor = read.needs.get(release.name)
    return floor is not None and not at_least(release.version, floor)


def _concerns(defect: Defect, release: Release) -> bool:
    return release.name in defect.names and allows(defect.versions, release.version)


def _wrong_together(release: Release, other: Release, defects: Iterable[Defect]) -> bool:
    return any(
        other.name in defect.beside
        and _concerns(defect, release)
        and allows(defect.beside[other.name], other.version)
        for defect in defects
    )
