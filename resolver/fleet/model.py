"""The plan of a fleet as values: the groups of machines, and what excludes newer releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..facts.model import CPU_BUILD, Facts
from ..plan.model import Plan
from ..plan.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMachine:
    """One machine of a fleet."""

    name: str
    """Unique in the fleet."""
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """The machines of a group on one system and Python, and the plan for them.

    The plan installs all wheels, whatever is installed. For machines without a GPU it selects none
    and requires `onnxruntime==…`.
    """

    platform: str
    """`linux_x86_64`."""
    abi: str
    """`cp311`, `cp313t`."""
    machines: tuple[FleetMachine, ...]
    facts: Facts
    """Those of `common_facts`."""
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
    def machines(self) -> tuple[FleetMachine, ...]:
        """Return the machines of all targets, by name."""
        machines = [machine for target in self.targets for machine in target.machines]
        return tuple(sorted(machines, key=lambda machine: machine.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionReason:
    """Machines that exclude a release for the same reasons."""

    machines: tuple[FleetMachine, ...]
    machine: tuple[Reason, ...]
    """What the machines exclude, whatever is installed there."""
    environment: tuple[Reason, ...] = ()
    """What is installed there excludes."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return all reasons, those of the machines first."""
        return (*self.machine, *self.environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedMachine:
    """A release that does not work on all machines."""

    version: str
    by: tuple[ExclusionReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """The plan for a fleet. Made by `plan_fleet`."""

    groups: tuple[Group, ...]
    """As few as possible, newest release first; last that of the machines without a GPU."""
    excluded: tuple[ExcludedMachine, ...]
    """The releases newer than the one that works everywhere, newest first; all if none does."""
    without_gpu: tuple[FleetMachine, ...]
    """Machines without a GPU, or without a driver for it."""
    impossible: tuple[tuple[FleetMachine, tuple[Reason, ...]], ...]
    """Machines with a GPU on which no release works; with the reasons against the release that has
    the fewest."""
    matrix_date: str
    matrix_digest: str

    @property
    def complete(self) -> bool:
        """Tell whether every machine is in a group."""
        grouped = sum(len(group.machines) for group in self.groups)
        served = any(group.distribution == CPU_BUILD for group in self.groups)
        return bool(grouped) and not self.impossible and (served or not self.without_gpu)


def group_names(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return a short name for each group: `cuda13`, `cpu`; the release or a number where needed."""
    by_cuda = tuple(f"cuda{group.cuda}" if group.cuda else "cpu" for group in groups)
    by_version = tuple(group.version if group.cuda else "cpu" for group in groups)
    for names in (by_cuda, by_version):
        if len(set(names)) == len(names):
            return names
    return tuple(str(at) for at in range(1, len(groups) + 1))


def machine_names(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a name for each facts file from the parts of its path, the last without its suffix.

    As few last parts as make all names different. The paths must differ.
    """
    for depth in range(1, max(map(len, paths), default=0) + 1):
        names = tuple("/".join(parts[-depth:]) for parts in paths)
        if len(set(names)) == len(names):
            return names
    return tuple("/".join(parts) for parts in paths)
