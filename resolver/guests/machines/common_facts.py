"""The facts that a fleet's plan is made from: of one machine, and of several in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ...facts.model import Driver, Facts, Gpu, Package
from ...resolve.gpu_code import capabilities
from ...resolve.situation import Situation
from ...versions import numbers


def has_gpu(here: Situation) -> bool:
    """Tell whether the machine has a driver, and is not known to have no GPU."""
    return here.facts.driver is not None and here.gpus != ()


def equivalence_key(here: Situation, names: Iterable[str]) -> Hashable:
    """Return what the rules read: machines with the same key get the same reasons.

    `names` are those of all distributions that the rules are about.
    """
    facts = here.facts
    demands = tuple(
        (name, tuple((demand.by, str(demand.specifier)) for demand in here.demanded(name)))
        for name in names
        if here.demanded(name)
    )
    nvidia = frozenset(row.name for row in facts.packages if row.name in here.matrix.distributions)
    markers = tuple(sorted(here.markers.items()))
    gpus = here.gpus is None, here.gpus == (), bool(facts.gpus)
    others = facts.platform.jetson is not None, here.torch and here.torch.name
    consumers = tuple((row.by, row.cuda, row.cudnn, row.idle) for row in here.consumers)
    keys = wheels_key(here), here.abi, facts.driver, gpus, others, demands, nvidia, markers
    return *keys, consumers


def wheels_key(here: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels reads."""
    return gpus_key(here), here.driver_cuda


def gpus_key(here: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels reads, without the driver."""
    demands = tuple(
        (name, tuple(sorted(str(demand.specifier) for demand in here.demanded(name))))
        for name in sorted(here.matrix.distributions)
        if here.demanded(name)
    )
    return here.platform, capabilities(here), here.facts.platform.libc, demands


def common_facts(situations: Sequence[Situation]) -> Facts:
    """Return facts that stand for several machines of one platform and Python.

    The oldest driver and glibc, every kind of GPU, the lowest Python, and the packages of all.
    """
    first = min(situations, key=lambda here: numbers(here.facts.python.version)).facts
    platform = first.platform._replace(
        libc=oldest_libc(situations), distribution=None, container=None
    )
    kinds = {
        (gpu.compute_capability or "", gpu.name or "")
        for here in situations
        for gpu in here.gpus or ()
    }
    served = tuple(
        Gpu(compute_capability=capability or None, name=name or None)
        for capability, name in sorted(kinds, key=lambda kind: (numbers(kind[0]), kind[1]))
    )
    by_name: dict[tuple[str, str, tuple[str, ...]], Package] = {}
    for here in situations:
        for package in here.facts.packages:
            by_name.setdefault((package.name, package.version, package.requires), package)
    return first._replace(
        platform=platform,
        driver=_oldest_driver(situations),
        gpus=None if all(here.gpus is None for here in situations) else served,
        python=first.python._replace(executable=None, environment=None, project=None),
        packages=tuple(by_name[key] for key in sorted(by_name)),
        environment={},
        sources={},
    )


def oldest_libc(situations: Sequence[Situation]) -> str | None:
    """Return the oldest known C library of these machines, or None."""
    platforms = [here.facts.platform for here in situations]
    known = [(each.c_library[1], each.libc) for each in platforms if each.c_library]
    return min(known, key=lambda pair: pair[0], default=((), None))[1]


def _oldest_driver(situations: Sequence[Situation]) -> Driver | None:
    drivers = [
        (numbers(here.driver_cuda or ""), numbers(driver.version or ""), driver)
        for here in situations
        if (driver := here.facts.driver) is not None
    ]
    return min(drivers, key=lambda row: row[:2])[2] if drivers else None
