"""What an update changes for the GPU: two states of a project, compared, and on each machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..facts.markers import marker_environment
from ..facts.model import Facts, Package
from ..matrix.model import Matrix
from ..plan.reasons import Consumer, Reason
from ..resolve.serving import Serving, against, serving
from ..versions import major
from .parse import ParsedPin

ProjectState = Facts | Sequence[ParsedPin]
"""What is installed: as it was seen, or as a lock pins it."""


class HostChange(NamedTuple):
    """A machine that has to run both states."""

    name: str
    before: tuple[Reason, ...]
    """Why it cannot use the old state; empty: it can."""
    after: tuple[Reason, ...]

    @property
    def falls_out(self) -> bool:
        """Tell whether it could use the old state and cannot use the new one."""
        return bool(self.after) and not self.before


class Update(NamedTuple):
    """What an update changes."""

    old: Serving
    new: Serving
    hosts: tuple[HostChange, ...] = ()

    @property
    def dropped(self) -> tuple[str, ...]:
        """The compute capabilities that the new state does not serve any more."""
        return tuple(gpu for gpu in self.old.gpus if gpu not in self.new.gpus)

    @property
    def gained(self) -> tuple[str, ...]:
        """The compute capabilities that the old state did not serve."""
        return tuple(gpu for gpu in self.new.gpus if gpu not in self.old.gpus)

    @property
    def clashes(self) -> tuple[Consumer, ...]:
        """Those who need another cuDNN major than the new state has."""
        cudnn = major(self.new.cudnn or "")
        return tuple(row for row in self.new.consumers if cudnn and row.cudnn not in {None, cudnn})


def compare(
    old: ProjectState,
    new: ProjectState,
    hosts: Iterable[tuple[str, Facts]],
    base: Facts,
    *,
    matrix: Matrix,
    known: Sequence[str],
) -> Update:
    """Return what the step from `old` to `new` changes, on `base` and on each of the named hosts.

    `known` are the compute capabilities that are asked for.
    """
    return Update(
        serving(_installed(old, base), matrix, known),
        serving(_installed(new, base), matrix, known),
        tuple(
            HostChange(
                name,
                against(_installed(old, host), matrix),
                against(_installed(new, host), matrix),
            )
            for name, host in hosts
        ),
    )


def _installed(state: ProjectState, machine: Facts) -> Facts:
    """Return the facts of a machine on which `state` is installed."""
    if isinstance(state, Facts):
        sources = machine.sources
        return state._replace(driver=machine.driver, gpus=machine.gpus, sources=sources)
    environment = marker_environment(machine)
    pins = {pin.name: pin.version for pin in state if pin.applies(environment)}
    return machine._replace(
        packages=tuple(Package(name, version) for name, version in sorted(pins.items())),
        libraries=(),
        onnxruntime=None,
    )
