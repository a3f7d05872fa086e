"""The facts that a fleet's plan is made from: of one machine, and of several in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ...facts.model import Driver, Facts, Gpu, Package
from ...resolve.gpu_code import capabilities
from ...resolve.situation import Situation
from ...versions import numbers


def has_gpu(situation: Situation) -> bool:
    """Return whether the machine has a driver, and is not known to have no GPU."""
    return situation.facts.driver is not None and situation.gpus != ()


def equivalence_key(situation: Situation, names: Iterable[str]) -> Hashable:
    """Return what the rules read: machines with the same key get the same reasons.

    `names` are those of all distributions that the rules are about.
    """
    facts = situation.facts
    demands = tuple(
        (name, tuple((demand.by, str(demand.specifier)) for demand in situation.demanded(name)))
        for name in names
        if situation.demanded(name)
    )
    nvidia = frozenset(
        package.name for package in facts.packages if package.name in situation.matrix.distributions
    )
    markers = tuple(sorted(situation.markers.items()))
    gpus = situation.gpus is None, situation.gpus == (), bool(facts.gpus)
    others = facts.platform.jetson is not None, situation.torch and situation.torch.name
    consumers = tuple(
        (consumer.by, consumer.cuda, consumer.cudnn, consumer.idle)
        for consumer in situation.consumers
    )
    keys = (
        wheels_key(situation),
        situation.abi,
        facts.driver,
        gpus,
        others,
        demands,
        nvidia,
        markers,
    )
    return *keys, consumers


def wheels_key(situation: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels reads."""
    return gpus_key(situation), situation.driver_cuda


def gpus_key(situation: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels reads, without the driver."""
    demands = tuple(
        (name, tuple(sorted(str(demand.specifier) for demand in situation.demanded(name))))
        for name in sorted(situation.matrix.distributions)
        if situation.demanded(name)
    )
    return situation.platform, capabilities(situation), situation.facts.platform.libc, demands


def common_facts(situations: Sequence[Situation]) -> Facts:
    """Return facts that stand for several machines of one platform and Python.

    The oldest driver and glibc, every kind of GPU, the lowest Python, and the packages of all.
    """
    first = min(situations, key=lambda situation: numbers(situation.facts.python.version)).facts
    platform = first.platform._replace(
        libc=oldest_libc(situations), distribution=None, container=None
    )
    kinds = {
        (gpu.compute_capability or "", gpu.name or "")
        for situation in situations
        for gpu in situation.gpus or ()
    }
    served = tuple(
        Gpu(compute_capability=capability or None, name=name or None)
        for capability, name in sorted(kinds, key=lambda kind: (numbers(kind[0]), kind[1]))
    )
    by_name: dict[tuple[str, str, tuple[str, ...]], Package] = {}
    for situation in situations:
        for package in situation.facts.packages:
            by_name.setdefault((package.name, package.version, package.requires), package)
    return first._replace(
        platform=platform,
        driver=_oldest_driver(situations),
        gpus=None if all(situation.gpus is None for situation in situations) else served,
        python=first.python._replace(executable=None, environment=None, project=None),
        packages=tuple(by_name[key] for key in sorted(by_name)),
        environment={},
        sources={},
    )


def oldest_libc(situations: Sequence[Situation]) -> str | None:
    """Return the oldest known C library of these machines, or None."""
    platforms = [situation.facts.platform for situation in situations]
    known = [(each.c_library[1], each.libc) for each in platforms if each.c_library]
    return min(known, key=lambda pair: pair[0], default=((), None))[1]


def _oldest_driver(situations: Sequence[Situation]) -> Driver | None:
    drivers = [
        (numbers(situation.driver_cuda or ""), numbers(driver.version or ""), driver)
        for situation in situations
        if (driver := situation.facts.driver) is not None
    ]
    return min(drivers, key=lambda row: row[:2])[2] if drivers else None
