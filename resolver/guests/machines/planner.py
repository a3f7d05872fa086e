"""The fleet's planner: one plan for many machines, or the fewest groups with a plan each.

The order of the machines does not matter. A release that is installed on one machine gets no
preference; what other packages require (torch's pins, fastembed) counts as on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...facts.model import CPU_BUILD, GPU_BUILD
from ...lock.groups import FleetMachine, Group, TargetPlan
from ...lock.locked_facts import names_in_locks, without_locked_packages
from ...matrix.model import Matrix
from ...plan.model import Plan
from ...plan.reasons import reason
from ...resolve.candidate import without_wheels
from ...resolve.changes import changes_for
from ...resolve.components import Component, Components
from ...resolve.msvc import runtime_for
from ...resolve.options import PlanOptions
from ...resolve.rules import Judgement, reasons_for
from ...resolve.situation import Situation, situation_of
from ...resolve.smallest import smallest_components
from ...resolve.tensorrt import tensorrt_for
from ...versions import major
from .common_facts import common_facts, equivalence_key, has_gpu
from .model import ExcludedMachine, ExclusionReason, FleetPlan
from .shared_wheels import sharing_machines
from .split import FleetSolver, ServedGroup


class _MachineKind(NamedTuple):
    """Machines for which every rule says the same."""

    situations: list[Situation]
    """The different ones: in what does not concern a rule."""
    machines: list[FleetMachine]


def plan_fleet(
    machines: Sequence[FleetMachine],
    options: PlanOptions,
    matrix: Matrix,
    *,
    with_cpu: bool = False,
) -> FleetPlan:
    """Return the plan for `machines`, whose names must differ.

    `with_cpu` gives machines without a GPU the CPU build, of the newest release that a group has.
    """
    locked = names_in_locks(matrix)
    names = sorted({*locked, *matrix.distributions, *(row.name for row in matrix.limits)})
    kinds: dict[object, _MachineKind] = {}
    same: dict[int, tuple[Situation, object]] = {}
    without: list[tuple[Situation, FleetMachine]] = []
    for machine in sorted(machines, key=lambda machine: machine.name):
        new = id(machine.facts) not in same
        if new:
            facts = without_locked_packages(machine.facts, matrix, locked)
            situation = situation_of(facts, options, matrix)
            same[id(machine.facts)] = situation, equivalence_key(situation, names)
        situation, key = same[id(machine.facts)]
        if not has_gpu(situation):
            without.append((situation, machine))
            continue
        kind = kinds.setdefault(key, _MachineKind([], []))
        kind.machines.append(machine)
        if new:
            kind.situations.append(situation)
    by_kind = [kind.machines for kind in kinds.values()]
    situations = [kind.situations[0] for kind in kinds.values()]
    fleet = FleetSolver(situations, matrix, [len(rows) for rows in by_kind])
    shares = fleet.split()
    if options.small:
        shares = tuple(_with_fewest_bytes(share, fleet) for share in shares)
    served = {member for share in shares for member in share.members}
    groups = [_group(share, fleet, [*kinds.values()]) for share in shares]
    if with_cpu and groups and without:
        groups.append(_cpu_group(groups[0].version, without, matrix))
    return FleetPlan(
        groups=tuple(groups),
        excluded=_excluded(fleet, shares, by_kind),
        without_gpu=tuple(machine for _, machine in without),
        impossible=tuple(
            (machine, fleet.least_against(member))
            for member, rows in enumerate(by_kind)
            if member not in served
            for machine in rows
        ),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
    )


def _excluded(
    fleet: FleetSolver, shares: Sequence[ServedGroup], by_kind: Sequence[Sequence[FleetMachine]]
) -> tuple[ExcludedMachine, ...]:
    """Return who excludes each release that is newer than the one that serves all.

    Machines on which no release works do not count.
    """
    served = sorted(member for share in shares for member in share.members)
    excluded: list[ExcludedMachine] = []
    for version in fleet.versions if served else ():
        if len(shares) == 1 and version == shares[0].version:
            break
        by: dict[Judgement, list[FleetMachine]] = {}
        for member in served:
            judged = fleet.against(version, member)
            if judged:
                by.setdefault(judged, []).extend(by_kind[member])
        if not by:
            none = Judgement((reason("no-common-set"),), ())
            by[none] = [row for member in served for row in by_kind[member]]
        exclusions = [
            ExclusionReason(
                machines=_sorted(rows), machine=why.machine, environment=why.environment
            )
            for why, rows in by.items()
        ]
        excluded.append(ExcludedMachine(version=version, by=tuple(exclusions)))
    return tuple(excluded)


def _sorted(machines: Iterable[FleetMachine]) -> tuple[FleetMachine, ...]:
    return tuple(sorted(machines, key=lambda machine: machine.name))


def _group(share: ServedGroup, fleet: FleetSolver, kinds: Sequence[_MachineKind]) -> Group:
    targets: dict[tuple[str, str], list[int]] = {}
    for member in share.members:
        situation = fleet.situations[member]
        targets.setdefault((situation.platform, situation.abi), []).append(member)
    return Group(
        distribution=GPU_BUILD,
        version=share.version,
        cuda=major(fleet.build(share.version, share.members[0]).cuda),
        targets=tuple(
            _target(
                share,
                [situation for member in members for situation in kinds[member].situations],
                [machine for member in members for machine in kinds[member].machines],
            )
            for _, members in sorted(targets.items())
        ),
    )


def _with_fewest_bytes(share: ServedGroup, fleet: FleetSolver) -> ServedGroup:
    """Return `share` with the smallest set of each platform that serves all its machines."""
    wheels: dict[str, tuple[Component, ...]] = {}
    for member in share.members:
        platform = fleet.situations[member].platform
        alike = [
            situation
            for situation in map(fleet.situations.__getitem__, share.members)
            if situation.platform == platform
        ]
        if platform not in wheels:
            wheels[platform] = smallest_components(
                fleet.build(share.version, member),
                sharing_machines(alike),
                share.wheels[platform],
            )
    return replace(share, wheels=wheels)


def _target(
    share: ServedGroup, situations: Sequence[Situation], machines: Sequence[FleetMachine]
) -> TargetPlan:
    situation = situation_of(common_facts(situations), situations[0].options, situations[0].matrix)
    builds = {(build.version, build.platform): build for build in situation.matrix.builds}
    build = builds[share.version, situation.platform]
    components = Components(chosen=share.wheels[situation.platform])
    candidate = without_wheels(build, situation, components)._replace(
        runtime=runtime_for(build, situation), tensorrt=tensorrt_for(build, situation)
    )
    changes = changes_for(candidate, situation)
    plan = Plan(
        verdict="fixable",
        why=reasons_for(candidate, situation),
        cuda=major(build.cuda),
        selection=changes.selection,
        install=changes.install,
        companions=changes.companions,
        placeholder=changes.placeholder,
        requires=changes.requires,
        matrix_date=situation.matrix.date,
        matrix_digest=situation.matrix.digest,
    )
    machines = _sorted(machines)
    return TargetPlan(
        platform=situation.platform,
        abi=situation.abi,
        machines=machines,
        facts=situation.facts,
        plan=plan,
    )


def _cpu_group(
    version: str, without: Sequence[tuple[Situation, FleetMachine]], matrix: Matrix
) -> Group:
    """Return the group of the machines without a GPU: uv finds the CPU build's wheels."""
    targets: dict[tuple[str, str], list[tuple[Situation, FleetMachine]]] = {}
    for situation, machine in without:
        targets.setdefault((situation.platform, situation.abi), []).append((situation, machine))
    plan = Plan(
        verdict="fixable",
        requires=(f"{CPU_BUILD}=={version}",),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
    )
    return Group(
        distribution=CPU_BUILD,
        version=version,
        cuda=None,
        targets=tuple(
            TargetPlan(
                platform=platform,
                abi=abi,
                machines=_sorted(machine for _, machine in rows),
                facts=common_facts([situation for situation, _ in rows]),
                plan=plan,
            )
            for (platform, abi), rows in sorted(targets.items())
        ),
    )
