"""One plan for many machines, or the smallest split into groups with a plan each.

Core, and deterministic: the order of the machines does not matter. A fleet's plan is made from
nothing: that some release is installed on one machine is no reason to take it on all. What stays
installed there keeps its say (torch's pins, what fastembed requires), as on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .candidate import bare
from .components import Components
from .facts import CPU_BUILD, GPU_BUILD, Facts
from .fleet_facts import common, fresh, has_gpu, kind
from .fleet_split import Fleet, Share
from .matrix import Matrix
from .msvc import runtime_for
from .plan import Plan, Reason, reason
from .rules import reasons_for
from .situation import Situation, Wishes, situation
from .steps import steps_to
from .versions import major


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine of a fleet."""

    name: str
    """How people call it; no two of a fleet are called the same."""
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """The machines of a group on one system and Python, and the plan for them.

    The plan installs everything: it is the set of a lock, not the difference from what is there.
    For machines without a GPU it selects nothing and requires `onnxruntime==…`.
    """

    platform: str
    """`linux_x86_64`."""
    abi: str
    """`cp311`, `cp313t`."""
    machines: tuple[Machine, ...]
    facts: Facts
    """What all of them have: the oldest driver and glibc, every kind of GPU, the lowest Python."""
    plan: Plan

    @property
    def python(self) -> str:
        """Return the Python that markers compare: `3.11`."""
        return ".".join(self.facts.python.version.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Machines that share one lock."""

    distribution: str
    """`onnxruntime-gpu`, or `onnxruntime` for machines without a GPU."""
    version: str
    cuda: str | None
    """The CUDA major; None without a GPU."""
    targets: tuple[TargetPlan, ...]

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Return the machines of all targets, by name."""
        found = (machine for target in self.targets for machine in target.machines)
        return tuple(sorted(found, key=lambda machine: machine.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Machines that exclude a release for the same reasons."""

    machines: tuple[Machine, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A release that does not work on all machines."""

    version: str
    by: tuple[Exclusion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The whole answer for a fleet."""

    groups: tuple[Group, ...]
    """One: the same set works on all. More: the smallest split, newest release first; that of the
    machines without a GPU, where they were asked for, comes last."""
    excluded: tuple[Excluded, ...]
    """The releases newer than the one that works everywhere, newest first; all where none does."""
    without_gpu: tuple[Machine, ...]
    """Machines without a GPU, or without a driver for it."""
    impossible: tuple[tuple[Machine, tuple[Reason, ...]], ...]
    """Machines with a GPU on which no release works; the reasons are those of the release that is
    nearest to working."""
    matrix_date: str
    matrix_digest: str

    @property
    def complete(self) -> bool:
        """Tell whether every machine is in a group."""
        grouped = sum(len(group.machines) for group in self.groups)
        served = any(group.distribution == CPU_BUILD for group in self.groups)
        return bool(grouped) and not self.impossible and (served or not self.without_gpu)


def plan_fleet(
    machines: Sequence[Machine], wishes: Wishes, matrix: Matrix, *, with_cpu: bool = False
) -> FleetPlan:
    """Return the plan for `machines`, whose names must differ.

    `with_cpu` gives machines without a GPU the CPU build, of the newest release that a group has.
    """
    kinds: dict[object, tuple[Situation, list[Machine]]] = {}
    without: list[tuple[Situation, Machine]] = []
    for machine in sorted(machines, key=lambda machine: machine.name):
        here = situation(fresh(machine.facts, matrix), wishes, matrix)
        if has_gpu(here):
            kinds.setdefault(kind(here), (here, []))[1].append(machine)
        else:
            without.append((here, machine))
    by_kind = [rows for _, rows in kinds.values()]
    fleet = Fleet([here for here, _ in kinds.values()], matrix, [len(rows) for rows in by_kind])
    shares = fleet.split()
    served = {member for share in shares for member in share.members}
    groups = [_group(share, fleet, by_kind) for share in shares]
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
    fleet: Fleet, shares: Sequence[Share], by_kind: Sequence[Sequence[Machine]]
) -> tuple[Excluded, ...]:
    """Return who excludes each release that is newer than the one that serves everybody.

    Machines on which nothing works at all have no say.
    """
    served = sorted(member for share in shares for member in share.members)
    found: list[Excluded] = []
    for version in fleet.versions if served else ():
        if len(shares) == 1 and version == shares[0].version:
            break
        by: dict[tuple[Reason, ...], list[Machine]] = {}
        for member in served:
            reasons = fleet.against(version, member)
            if reasons:
                by.setdefault(reasons, []).extend(by_kind[member])
        if not by:
            everybody = [machine for member in served for machine in by_kind[member]]
            by[reason("no-common-set"),] = everybody
        exclusions = [Exclusion(machines=_sorted(rows), reasons=why) for why, rows in by.items()]
        found.append(Excluded(version=version, by=tuple(exclusions)))
    return tuple(found)


def _sorted(machines: Iterable[Machine]) -> tuple[Machine, ...]:
    return tuple(sorted(machines, key=lambda machine: machine.name))


def _group(share: Share, fleet: Fleet, by_kind: Sequence[Sequence[Machine]]) -> Group:
    targets: dict[tuple[str, str], list[int]] = {}
    for member in share.members:
        here = fleet.heres[member]
        targets.setdefault((here.platform, here.abi), []).append(member)
    return Group(
        distribution=GPU_BUILD,
        version=share.version,
        cuda=major(fleet.build(share.version, share.members[0]).cuda),
        targets=tuple(
            _target(
                share,
                [fleet.heres[member] for member in members],
                [machine for member in members for machine in by_kind[member]],
            )
            for _, members in sorted(targets.items())
        ),
    )


def _target(share: Share, heres: Sequence[Situation], machines: Sequence[Machine]) -> TargetPlan:
    here = situation(common(heres), heres[0].wishes, heres[0].matrix)
    build = next(
        build
        for build in here.matrix.builds
        if (build.version, build.platform) == (share.version, here.platform)
    )
    components = Components(chosen=share.wheels[here.platform], reasons=())
    subject = replace(bare(build, here, components), runtime=runtime_for(build, here))
    steps = steps_to(subject, here)
    plan = replace(
        _empty_plan(here.matrix),
        why=reasons_for(subject, here),
        cuda=major(build.cuda),
        selection=steps.selection,
        install=steps.install,
        companions=steps.companions,
        requires=steps.requires,
    )
    return TargetPlan(
        platform=here.platform,
        abi=here.abi,
        machines=_sorted(machines),
        facts=here.facts,
        plan=plan,
    )


def _cpu_group(version: str, without: Sequence[tuple[Situation, Machine]], matrix: Matrix) -> Group:
    """Return the group of the machines without a GPU: an engine finds the CPU build's wheels."""
    targets: dict[tuple[str, str], list[tuple[Situation, Machine]]] = {}
    for here, machine in without:
        targets.setdefault((here.platform, here.abi), []).append((here, machine))
    plan = replace(_empty_plan(matrix), requires=(f"{CPU_BUILD}=={version}",))
    return Group(
        distribution=CPU_BUILD,
        version=version,
        cuda=None,
        targets=tuple(
            TargetPlan(
                platform=platform,
                abi=abi,
                machines=_sorted(machine for _, machine in rows),
                facts=common([here for here, _ in rows]),
                plan=plan,
            )
            for (platform, abi), rows in sorted(targets.items())
        ),
    )


def _empty_plan(matrix: Matrix) -> Plan:
    """Return a plan that does nothing."""
    return Plan(
        verdict="fixable",
        findings=(),
        why=(),
        cuda=None,
        selection=(),
        uninstall=(),
        install=(),
        companions=(),
        requires=(),
        rejected=(),
        unlock=(),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
    )


def group_names(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return a short name for each group: `cuda13`, `cpu`; the release or a number where needed."""
    for name_of in (_by_cuda, _by_version):
        names = tuple(name_of(group) for group in groups)
        if len(set(names)) == len(names):
            return names
    return tuple(str(at) for at in range(1, len(groups) + 1))


def _by_cuda(group: Group) -> str:
    return "cpu" if group.cuda is None else f"cuda{group.cuda}"


def _by_version(group: Group) -> str:
    return "cpu" if group.cuda is None else group.version


def machine_names(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a name for each facts file from the parts of its path, the last without its suffix.

    The last part, or as many as it takes so that no two are the same. The paths must differ.
    """
    for depth in range(1, max(map(len, paths), default=0) + 1):
        names = tuple("/".join(parts[-depth:]) for parts in paths)
        if len(set(names)) == len(names):
            return names
    return tuple("/".join(parts) for parts in paths)
