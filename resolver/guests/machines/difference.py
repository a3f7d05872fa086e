"""What an update changes for the GPU: two states of a project, compared, and on each machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...facts.markers import marker_environment
from ...facts.model import GPU_BUILD, Driver, Facts, Package
from ...matrix.model import Matrix
from ...plan.reasons import Consumer, Finding, Named, Reason
from ...resolve.options import PlanOptions
from ...resolve.serving import Serving, against, on_machine, plan_on_machine, serving
from ...versions import major, numbers
from .against import LACKS, KnownWheels, known_wheels, spelled, why_not
from .parsed_lock import ParsedPin

ProjectState = Facts | Sequence[ParsedPin]
"""What is installed: as it was seen, or as a lock pins it."""
WhyNot = Reason | Finding
"""Why a machine cannot use a state: that of a lock by its pins, what was seen by its files, too."""
_FROM_ELSEWHERE = frozenset({LACKS, "libraries-not-loaded", "requirement-missing"})
"""The codes of what a machine or an application may have beside the state."""


class HostChange(NamedTuple):
    """A machine that has to run both states."""

    name: str
    before: tuple[WhyNot, ...]
    """Why it cannot use the old state; empty: it can."""
    after: tuple[WhyNot, ...]

    @property
    def loses_gpu_support(self) -> bool:
        """Return whether it could use the old state and cannot use the new one."""
        return bool(self.after) and not self.before


class Update(NamedTuple):
    """What an update changes."""

    old: Serving
    new: Serving
    hosts: tuple[HostChange, ...] = ()
    old_unknown: str | None = None
    """The release of onnxruntime-gpu in the old state that the matrix does not hold."""
    new_unknown: str | None = None
    uncounted: tuple[Named, ...] = ()
    """NVIDIA's wheels in one of the states of which the matrix holds nothing."""
    broken: tuple[WhyNot, ...] = ()
    """Why no machine can use the new state, as it was seen, where one could use the old one."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The compute capabilities that the new state does not serve any more."""
        return () if self.new_unknown else _lacking(self.old.gpus, self.new.gpus)

    @property
    def gained(self) -> tuple[str, ...]:
        """The compute capabilities that the old state did not serve."""
        nothing = self.old_unknown or self.broken
        return () if nothing else _lacking(self.new.gpus, self.old.gpus)

    @property
    def clashes(self) -> tuple[Consumer, ...]:
        """Those who need another cuDNN major than the new state has."""
        cudnn = major(self.new.cudnn or "")
        return tuple(
            consumer
            for consumer in self.new.consumers
            if cudnn and consumer.cudnn not in {None, cudnn}
        )


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

    `known` are the compute capabilities that are asked for. A release that the matrix does not hold
    is taken to work: nothing speaks against it.
    """

    def state(installed: ProjectState) -> tuple[Serving, str | None]:
        facts = _installed(installed, base)
        found = serving(facts, matrix, known)
        package = facts.package(GPU_BUILD)
        held = any(package and build.version == package.version for build in matrix.builds)
        return found, package.version if package and not held and not found.release else None

    files = known_wheels(matrix)
    old, new = (each if isinstance(each, Facts) else spelled(each, files) for each in (old, new))
    options = PlanOptions(autoload=isinstance(old, Facts))  # a lock says nothing of the loader
    (before, old_unknown), (after, new_unknown) = state(old), state(new)

    def on(name: str, host: Facts) -> HostChange:
        return _host_change(
            name,
            None if old_unknown else _against(old, files, host, options, matrix),
            () if new_unknown else _against(new, files, host, options, matrix),
        )

    broken: tuple[WhyNot, ...] = ()
    if isinstance(new, Facts):
        newest = Driver(version=max(before.driver or "", after.driver or "", key=numbers))
        anywhere = on("", new._replace(driver=newest, gpus=None))
        broken = anywhere.after if anywhere.loses_gpu_support else ()
    return Update(
        before,
        after,
        tuple(on(name, host) for name, host in hosts),
        old_unknown,
        new_unknown,
        tuple(sorted({*_uncounted(old, base, matrix)} ^ {*_uncounted(new, base, matrix)})),
        broken,
    )


def _host_change(
    name: str, before: tuple[WhyNot, ...] | None, after: tuple[WhyNot, ...]
) -> HostChange:
    """Return what the step changes on a machine; `before`: None where nothing is known of it.

    A lock may leave libraries to the machine, and an environment loading them to its application:
    what is lacking counts where it was not lacking before.
    """
    lacked = _FROM_ELSEWHERE.intersection(why.code for why in before or ())
    some = _FROM_ELSEWHERE if before is None else lacked
    kept, left = (
        tuple(why for why in reasons if why.code not in some) for reasons in (before or (), after)
    )
    return HostChange(name, kept, left)


def _against(
    state: ProjectState, files: KnownWheels, host: Facts, options: PlanOptions, matrix: Matrix
) -> tuple[WhyNot, ...]:
    if isinstance(state, Facts):
        plan = plan_on_machine(state, host, options, matrix)
        return tuple(finding for finding in plan.findings if finding.severity == "error")
    found = against(_installed(state, host), matrix)
    if any(why.code == "gpu-build-absent" for why in found):
        return found
    return tuple(dict.fromkeys((*found, *why_not(state, files, host, PlanOptions(), matrix))))


def _uncounted(state: ProjectState, base: Facts, matrix: Matrix) -> Iterator[Named]:
    for package in _installed(state, base).packages:
        distribution = matrix.distributions.get(package.name)
        if distribution and all(
            release.version != package.version for release in distribution.releases
        ):
            yield Named(package.name, package.version)


def _lacking(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return those of `some` that are not among `others`."""
    return tuple(each for each in some if each not in others)


def _installed(state: ProjectState, machine: Facts) -> Facts:
    """Return the facts of a machine on which `state` is installed."""
    if isinstance(state, Facts):
        return on_machine(state, machine)
    environment = marker_environment(machine)
    pins = {pin.name: pin.version for pin in state if pin.exact and pin.applies(environment)}
    return machine._replace(
        packages=tuple(Package(name, version) for name, version in sorted(pins.items())),
        libraries=(),
        onnxruntime=None,
    )
