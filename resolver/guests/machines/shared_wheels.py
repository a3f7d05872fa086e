"""Choose the nvidia wheels that serve one release on several machines at once.

Every machine has to agree, and the versions are the same on every platform, as far as the
platforms have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...facts.model import Gpu
from ...matrix.model import Build, ToolkitRelease
from ...resolve.components import (
    Component,
    SharingMachines,
    pick_all,
    pick_release,
    toolkits_to_try,
)
from ...resolve.environment import Demand
from ...resolve.gpu_code import capabilities
from ...resolve.situation import Situation
from ...versions import newest_first, numbers
from .common_facts import oldest_libc

Chosen = Mapping[str, tuple[Component, ...]]
"""The wheels, by platform."""


class PlatformNeeds(NamedTuple):
    """The release's build for one platform, and the machines that it has to serve."""

    build: Build
    machines: SharingMachines


def sharing_machines(situations: Sequence[Situation]) -> SharingMachines:
    """Return what `situations`, machines of one platform, need of wheels.

    One situation stands for each compute capability, with the oldest driver that has it and the
    oldest glibc: a wheel that serves a GPU under a driver serves it under every newer one, too.
    """
    libc = oldest_libc(situations)
    oldest: dict[str | None, str | None] = {}
    demands: dict[str, tuple[Demand, ...]] = {}
    for situation in situations:
        for capability in capabilities(situation) or (None,):
            driver = oldest.setdefault(capability, situation.driver_cuda)
            if numbers(situation.driver_cuda or "") < numbers(driver or ""):
                oldest[capability] = situation.driver_cuda
        for name in situation.matrix.distributions:
            if situation.demanded(name):
                demands[name] = (*demands.get(name, ()), *situation.demanded(name))
    first = situations[0]
    consumers = tuple(consumer for situation in situations for consumer in situation.consumers)
    facts = first.facts._replace(platform=first.facts.platform._replace(libc=libc))
    each = tuple(
        first._replace(
            facts=facts,
            gpus=(Gpu(compute_capability=capability),),
            driver_cuda=driver,
            demands={},
            consumers=consumers,
        )
        for capability, driver in oldest.items()
    )
    return SharingMachines(each=each, demands=demands, picked={})


def choose_shared_wheels(platforms: Sequence[PlatformNeeds]) -> Chosen | None:
    """Return one set of wheels for all `platforms`, or None where no set serves every machine.

    A version may differ between platforms only where no set serves all of them.
    """
    strictest = max(platforms, key=lambda needs: numbers(needs.build.cuda))
    for toolkit in toolkits_to_try(strictest.build, strictest.machines.each[0]):
        chosen = _from_toolkit(toolkit, platforms)
        if chosen is not None:
            return chosen
    if len(platforms) == 1:
        return None
    separate: dict[str, tuple[Component, ...]] = {}
    for needs in platforms:
        chosen = choose_shared_wheels([needs])
        if chosen is None:
            return None
        separate |= chosen
    return separate


def _from_toolkit(toolkit: ToolkitRelease, platforms: Sequence[PlatformNeeds]) -> Chosen | None:
    held: dict[str, str | None] = {}  # None: the platforms have no version in common
    while True:
        picked: dict[str, _Picks] = {}
        for needs in platforms:
            picks: _Picks = {}
            for name, pick in pick_all(toolkit, needs.build, needs.machines, held):
                if not isinstance(pick, Component):
                    return None
                picks[name] = pick
            picked[needs.build.platform] = picks
        different = next((name for name in _differing(picked.values()) if name not in held), None)
        if different is None:
            return {
                platform: tuple(picks[name] for name in sorted(picks))
                for platform, picks in picked.items()
            }
        held[different] = _common_version(different, platforms, picked)


def _common_version(
    name: str, platforms: Sequence[PlatformNeeds], picked: Mapping[str, _Picks]
) -> str | None:
    """Return the version that serves every platform that takes `name`; None: there is none.

    What one of them picked is the toolkit's own, if any; otherwise it is the newest.
    """
    concerned = [needs for needs in platforms if name in picked[needs.build.platform]]
    taken = {picked[needs.build.platform][name].release.version for needs in concerned}
    distribution = concerned[0].machines.each[0].matrix.distributions[name]
    versions = {release.version for release in distribution.releases}
    for version in sorted(
        versions, key=lambda row: (row in taken, newest_first(row)), reverse=True
    ):
        picks = (
            pick_release(distribution, version, needs.build, needs.machines) for needs in concerned
        )
        if all(isinstance(pick, Component) for pick in picks):
            return version
    return None


_Picks = dict[str, Component]
"""What one platform takes, by distribution."""


def _differing(picked: Iterable[_Picks]) -> list[str]:
    """Return the distributions of which the platforms take different versions."""
    versions: dict[str, set[str]] = {}
    for picks in picked:
        for name, pick in picks.items():
            versions.setdefault(name, set()).add(pick.release.version)
    return sorted(name for name, taken in versions.items() if len(taken) > 1)
