"""Machines that share a lock: what `lock` and `download` are made for.

One machine is a group of its own; several are grouped by whoever plans for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..facts.model import Facts
from ..plan.model import Plan


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


def group_names(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return a short name for each group: `cuda13`, `cpu`; the release or a number where needed."""
    by_cuda = tuple(f"cuda{group.cuda}" if group.cuda else "cpu" for group in groups)
    by_version = tuple(group.version if group.cuda else "cpu" for group in groups)
    for names in (by_cuda, by_version):
        if len(set(names)) == len(names):
            return names
    return tuple(str(at) for at in range(1, len(groups) + 1))
