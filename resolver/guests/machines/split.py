"""Split a fleet: which release serves which machines, and the fewest groups that serve all.

A machine is the index of its situation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from ...matrix.model import Build, Matrix
from ...plan.reasons import Reason
from ...resolve.candidate import without_wheels
from ...resolve.components import Components, SharingMachines, choose_nvidia_wheels
from ...resolve.environment_rules import check_shared_folders
from ...resolve.rules import Judgement, judge, judge_without_wheels
from ...resolve.situation import Situation
from ...versions import newest_first
from .common_facts import gpus_key, wheels_key
from .set_cover import maximal_subsets, minimum_set_covers
from .shared_wheels import Chosen, PlatformNeeds, choose_shared_wheels, sharing_machines

UNWISHED = "not-wished"
"""The reason against a release that works, and that the options exclude."""
Members = tuple[int, ...]
"""Indices of situations, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGroup:
    """Machines that can share wheels, and these wheels."""

    version: str
    members: Members
    wheels: Chosen


class FleetSolver:
    """The machines of a fleet, and cached results about them."""

    def __init__(
        self, situations: Sequence[Situation], matrix: Matrix, counts: Sequence[int] = ()
    ) -> None:
        """Take the situations, and the number of machines in each: one if not given."""
        self.situations = situations
        self._kinds = [wheels_key(situation) for situation in situations]
        self._held = [
            bool(situation.consumers)
            or any(
                situation.facts.package(name)
                for name in matrix.distributions
                if situation.demanded(name)
            )
            for situation in situations
        ]
        self._machines: dict[Members, SharingMachines] = {}
        self._components: dict[tuple[str, Hashable], Components] = {}
        self._counts = counts or [1] * len(situations)
        self._builds = {(build.version, build.platform): build for build in matrix.builds}
        self._any = {build.version: build for build in matrix.builds}
        self.versions = sorted(self._any, key=newest_first, reverse=True)
        self._shares: dict[tuple[str, Members], ServedGroup | None] = {}
        self._quick: dict[tuple[str, int], Judgement] = {}

    def build(self, version: str, member: int) -> Build:
        """Return the release's build for the platform of a machine; for any, if it has none."""
        return self._builds.get((version, self.situations[member].platform), self._any[version])

    def against(self, version: str, member: int) -> Judgement:
        """Return why a release does not work on one machine.

        The wheels are checked only if no other rule rejects it.
        """
        quick = self._without_wheels(version, member)
        if quick or self.share(version, (member,)):
            return quick
        situation = self.situations[member]
        key = version, self._kinds[member]
        if key not in self._components:
            self._components[key] = choose_nvidia_wheels(self.build(version, member), situation)
        return judge(
            without_wheels(self.build(version, member), situation, self._components[key]), situation
        )

    def least_against(self, member: int) -> tuple[Reason, ...]:
        """Return the reasons against the release that has the fewest, the oldest of such.

        The oldest release needs the oldest driver. Releases that the options exclude come last.
        """
        against = [self.against(version, member).reasons for version in reversed(self.versions)]
        return min(against, key=lambda why: (any(row.code == UNWISHED for row in why), len(why)))

    def _without_wheels(self, version: str, member: int) -> Judgement:
        key = version, member
        if key not in self._quick:
            build = self.build(version, member)
            self._quick[key] = judge_without_wheels(build, self.situations[member])
        return self._quick[key]

    def share(self, version: str, members: Members) -> ServedGroup | None:
        """Return the wheels with which a release serves all of `members`, or None."""
        key = version, members
        if key not in self._shares:
            self._shares[key] = self._share(version, members)
        return self._shares[key]

    def _share(self, version: str, members: Members) -> ServedGroup | None:
        if any(self._without_wheels(version, member) for member in members):
            return None
        platforms: dict[str, dict[Hashable, int]] = {}
        for member in members:
            kinds = platforms.setdefault(self.situations[member].platform, {})
            kinds.setdefault(self._kinds[member], member)
        wheels = choose_shared_wheels(
            [
                PlatformNeeds(self._builds[version, platform], self._sharing((*kinds.values(),)))
                for platform, kinds in sorted(platforms.items())
            ]
        )
        if wheels is None:
            return None
        if not all(self._folders_are_free(version, wheels, member) for member in members):
            return None
        return ServedGroup(version=version, members=members, wheels=wheels)

    def _sharing(self, members: Members) -> SharingMachines:
        if members not in self._machines:
            self._machines[members] = sharing_machines([self.situations[at] for at in members])
        return self._machines[members]

    def _folders_are_free(self, version: str, wheels: Chosen, member: int) -> bool:
        situation = self.situations[member]
        if not self._held[member]:  # nobody needs a wheel that could share a folder
            return True
        components = Components(chosen=wheels[situation.platform])
        candidate = without_wheels(self.build(version, member), situation, components)
        return not any(True for _ in check_shared_folders(candidate, situation))

    def shares(self, version: str) -> list[ServedGroup]:
        """Return the largest sets of machines that a release serves with one set of wheels each."""
        able = tuple(
            member
            for member in range(len(self.situations))
            if not self._without_wheels(version, member)
        )
        whole = self.share(version, able) if able else None
        if whole is not None or not able:
            return [whole] if whole else []
        alike: dict[object, list[int]] = {}
        for member in able:
            if self.share(version, (member,)):
                # Of machines that differ only in the driver, what serves the oldest serves all.
                alike.setdefault(gpus_key(self.situations[member]), []).append(member)
        kinds = list(alike.values())

        def group_of(mask: int) -> ServedGroup | None:
            members = (row for at, kind in enumerate(kinds) if mask >> at & 1 for row in kind)
            return self.share(version, tuple(sorted(members)))

        masks = maximal_subsets(len(kinds), lambda mask: group_of(mask) is not None)
        return [group for mask in masks if (group := group_of(mask))]

    def newest(self, members: Members) -> ServedGroup | None:
        """Return the newest release that serves all of `members`."""
        return next(filter(None, (self.share(version, members) for version in self.versions)), None)

    def split(self) -> tuple[ServedGroup, ...]:
        """Return the fewest groups that serve every machine that anything serves, newest first.

        Of several such splits the one whose machines are, summed up, nearest to the newest release.
        Each machine is in the group with the newest release that serves it; each group has the
        newest release that serves all of it.
        """
        if not self.situations:
            return ()
        whole = self.newest(tuple(range(len(self.situations))))
        if whole is not None:
            return (whole,)
        shares: list[ServedGroup] = []
        masks: list[int] = []
        goal = 0
        for share in (share for version in self.versions for share in self.shares(version)):
            mask = sum(1 << member for member in share.members)
            if not any(mask & newer == mask for newer in masks):
                shares.append(share)
                masks.append(mask)
                goal |= mask
        covers = minimum_set_covers(masks, goal)
        splits = [self._regrouped([shares[at] for at in cover]) for cover in covers]
        return min(splits, key=self._distance, default=())

    def _regrouped(self, cover: Sequence[ServedGroup]) -> tuple[ServedGroup, ...]:
        taken: set[int] = set()
        groups: list[ServedGroup] = []
        for share in cover:  # newest first
            remaining = tuple(member for member in share.members if member not in taken)
            taken.update(remaining)
            best = self.newest(remaining)
            assert best is not None  # noqa: S101 - `share` serves them
            groups.append(best)
        return tuple(sorted(groups, key=_order, reverse=True))

    def _distance(self, split: Sequence[ServedGroup]) -> tuple[int, list[Members]]:
        """Return how many newer releases exist for each machine, summed up."""
        behind = 0
        for share in split:
            machines = sum(self._counts[member] for member in share.members)
            behind += self.versions.index(share.version) * machines
        return behind, [share.members for share in split]


def _order(share: ServedGroup) -> tuple[Version, list[int]]:
    return newest_first(share.version), [-member for member in share.members]
