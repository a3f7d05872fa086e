"""The plan of a fleet as values: the groups of machines, and what excludes newer releases."""

from __future__ import annotations

from dataclasses import dataclass

from ...facts.model import CPU_BUILD
from ...lock.groups import FleetMachine, Group
from ...plan.reasons import Reason


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
        """Return whether every machine is in a group."""
        grouped = sum(len(group.machines) for group in self.groups)
        served = any(group.distribution == CPU_BUILD for group in self.groups)
        return bool(grouped) and not self.impossible and (served or not self.without_gpu)
