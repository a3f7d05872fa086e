"""Choose the nvidia wheels that serve one release on several machines at once.

The rules for each wheel are those of `components`; here every machine has to agree, and the
versions are the same on every platform, as far as the platforms have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from ..facts.model import Gpu
from ..matrix.model import Build, LibraryNeed, Release, ToolkitRelease
from ..resolve.components import (
    Component,
    needs_of,
    releases_to_try,
    required_distributions,
    toolkits_to_try,
    why_unusable,
)
from ..resolve.release_checks import capabilities
from ..resolve.situation import Situation
from ..versions import allows, newest_first, numbers
from .common_facts import oldest_libc

Chosen = Mapping[str, tuple[Component, ...]]
"""The wheels, by platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformNeeds:
    """What the machines of one platform need, and the release's build for it. Made by `place`."""

    build: Build
    each: tuple[Situation, ...]
    """One for each compute capability, with the oldest driver that has it and the oldest glibc."""
    needs: Mapping[str, int]
    """A number for what the build needs of each distribution: the same for the same needs."""
    demands: Mapping[str, frozenset[SpecifierSet]]
    """What stays installed on any of them requires of nvidia's wheels."""


class SharedWheelChooser:
    """Chooses wheels; what serves what is found out once, however often it is asked."""

    def __init__(self) -> None:
        self._each: dict[tuple[str, str | None, str | None, str | None], Situation] = {}
        self._known: dict[tuple[str, str], list[Release]] = {}
        self._fitting: dict[tuple[str, str, frozenset[SpecifierSet]], list[Release]] = {}
        self._served: dict[tuple[str, str, int, int], bool] = {}
        self._needs: dict[tuple[LibraryNeed, ...], int] = {}
        self._needs_of: dict[tuple[str, str], Mapping[str, int]] = {}

    def place(self, build: Build, situations: Sequence[Situation]) -> PlatformNeeds:
        """Return what `situations`, machines of one platform, need of the wheels for `build`.

        A wheel that serves a GPU under a driver serves it under every newer one, too.
        """
        libc = oldest_libc(situations)
        oldest: dict[str | None, str | None] = {}
        demands: dict[str, frozenset[SpecifierSet]] = {}
        for here in situations:
            for capability in capabilities(here) or (None,):
                driver = oldest.setdefault(capability, here.driver_cuda)
                if numbers(here.driver_cuda or "") < numbers(driver or ""):
                    oldest[capability] = here.driver_cuda
            for name, rows in here.demands.items():
                wanted = frozenset(row.specifier for row in rows)
                demands[name] = demands.get(name, frozenset()) | wanted
        each = [
            self._one(situations[0], capability, driver, libc)
            for capability, driver in oldest.items()
        ]
        return PlatformNeeds(
            build=build, each=tuple(each), needs=self._numbered(build), demands=demands
        )

    def _numbered(self, build: Build) -> Mapping[str, int]:
        key = build.version, build.platform
        if key not in self._needs_of:
            self._needs_of[key] = {
                name: self._needs.setdefault(needs_of(build, name), len(self._needs))
                for name in {need.distribution for need in build.needs if need.distribution}
            }
        return self._needs_of[key]

    def _one(
        self, here: Situation, capability: str | None, driver: str | None, libc: str | None
    ) -> Situation:
        key = here.platform, capability, driver, libc
        if key not in self._each:
            platform = here.facts.platform._replace(libc=libc)
            self._each[key] = here._replace(
                facts=here.facts._replace(platform=platform),
                gpus=(Gpu(compute_capability=capability),),
                driver_cuda=driver,
                demands={},
            )
        return self._each[key]

    def choose(self, places: Sequence[PlatformNeeds]) -> Chosen | None:
        """Return one set of wheels for all `places`, or None where no set serves every machine.

        A version may differ between platforms only where no set serves all of them.
        """
        strictest = max(places, key=lambda place: numbers(place.build.cuda)[:2])
        for toolkit in toolkits_to_try(strictest.build, strictest.each[0]):
            found = self._from_toolkit(toolkit, places)
            if found is not None:
                return found
        apart = [self.choose([place]) for place in places] if len(places) > 1 else [None]
        chosen: dict[str, tuple[Component, ...]] = {}
        for one in apart:
            if one is None:
                return None
            chosen |= one
        return chosen

    def _from_toolkit(
        self, toolkit: ToolkitRelease, places: Sequence[PlatformNeeds]
    ) -> Chosen | None:
        held: dict[str, str | None] = {}  # None: the platforms have no version in common
        while True:
            picked: dict[str, _Picks] = {}
            for place in places:
                picks = self._pick_all(toolkit, place, held)
                if picks is None:
                    return None
                picked[place.build.platform] = picks
            apart = next((name for name in _differing(picked.values()) if name not in held), None)
            if apart is None:
                return {
                    platform: tuple(
                        Component(release=picks[name], installed=False) for name in sorted(picks)
                    )
                    for platform, picks in picked.items()
                }
            held[apart] = self._common(apart, places, picked)

    def _common(
        self, name: str, places: Sequence[PlatformNeeds], picked: Mapping[str, _Picks]
    ) -> str | None:
        """Return the version that serves every platform that takes `name`; None: there is none.

        What one of them picked is the toolkit's own, if any; otherwise it is the newest.
        """
        concerned = [place for place in places if name in picked[place.build.platform]]
        able = [
            {row.version for row in self._allowed(name, place) if self._serves(row, place)}
            for place in concerned
        ]
        shared = set.intersection(*able)
        taken = {picked[place.build.platform][name].version for place in concerned} & shared
        return max(taken or shared, key=newest_first, default=None)

    def _pick_all(
        self, toolkit: ToolkitRelease, place: PlatformNeeds, held: Mapping[str, str | None]
    ) -> _Picks | None:
        """Return what `place` takes of every distribution that it needs; None where one fails."""
        picks: _Picks = {}
        known = place.each[0].matrix.distributions
        waiting = sorted({need.distribution for need in place.build.needs if need.distribution})
        while waiting:
            name = waiting.pop(0)
            if name in picks or name not in known:
                continue
            release = self._pick(name, toolkit, place, held.get(name))
            if release is None:
                return None
            picks[name] = release
            waiting.extend(required_distributions(release, known[name], place.each[0]))
        return picks

    def _pick(
        self, name: str, toolkit: ToolkitRelease, place: PlatformNeeds, held: str | None
    ) -> Release | None:
        """Return the newest release of `name` that serves every machine of `place`, or None.

        Only `held` counts where it is given. Otherwise a distribution of the toolkit is taken in
        the toolkit's version, unless something that stays pins it.
        """
        allowed = self._allowed(name, place)
        if held is None:
            wanted = toolkit.components.get(name)
            rows = releases_to_try(self._releases(name, place), allowed, wanted)
        else:
            rows = [row for row in allowed if row.version == held]
        return next((row for row in rows if self._serves(row, place)), None)

    def _releases(self, name: str, place: PlatformNeeds) -> list[Release]:
        """Return the releases of `name` for the platform."""
        key = name, place.build.platform
        if key not in self._known:
            releases = place.each[0].matrix.distributions[name].releases
            self._known[key] = [row for row in releases if row.platform == place.build.platform]
        return self._known[key]

    def _allowed(self, name: str, place: PlatformNeeds) -> list[Release]:
        """Return the releases of `name` that everything that stays installed can live with."""
        wanted = place.demands.get(name, frozenset())
        key = name, place.build.platform, wanted
        if key not in self._fitting:
            self._fitting[key] = [
                row
                for row in self._releases(name, place)
                if all(allows(specifier, row.version) for specifier in wanted)
            ]
        return self._fitting[key]

    def _serves(self, row: Release, place: PlatformNeeds) -> bool:
        # Of the build only this counts: many releases need the same of a wheel.
        needs = place.needs.get(row.name, -1)
        for here in place.each:
            key = row.name, row.version, needs, id(here)
            if key not in self._served:
                distribution = here.matrix.distributions[row.name]
                wanted = needs_of(place.build, row.name)
                self._served[key] = why_unusable(row, distribution, wanted, here) is None
            if not self._served[key]:
                return False
        return True


_Picks = dict[str, Release]
"""What one platform takes, by distribution."""


def _differing(picked: Iterable[_Picks]) -> list[str]:
    """Return the distributions of which the platforms take different versions."""
    versions: dict[str, set[str]] = {}
    for picks in picked:
        for name, release in picks.items():
            versions.setdefault(name, set()).add(release.version)
    return sorted(name for name, found in versions.items() if len(found) > 1)
