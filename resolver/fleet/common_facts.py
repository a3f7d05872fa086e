"""The facts of a machine as a fleet's plan sees them, and what several machines have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES
from ..facts.model import LIBRARIES_SEARCHED, Driver, Facts, Gpu, Package
from ..matrix.model import MSVC_RUNTIME as MSVC
from ..matrix.model import Matrix
from ..resolve.release_checks import capabilities
from ..resolve.situation import Situation
from ..versions import numbers, requirement


def without_installed_set(facts: Facts, matrix: Matrix) -> Facts:
    """Return `facts` as if nothing was installed that a lock brings.

    What requires something else keeps its say. nvidia's wheels stay listed, as not intact: they are
    not kept, but what shares a folder with them still meets them.
    """
    texts = {text for build in matrix.builds for wheel in build.wheels for text in wheel.requires}
    brought: set[str] = {
        canonicalize_name(wanted.name) for wanted in map(requirement, texts) if wanted is not None
    }
    brought |= {*matrix.owners, LIBRARIES, MSVC}
    packages = tuple(
        package._replace(intact=False) if package.name in matrix.distributions else package
        for package in facts.packages
        if package.name not in brought
    )
    sources = {name: text for name, text in facts.sources.items() if name != LIBRARIES_SEARCHED}
    return facts._replace(
        packages=packages, toolkits=(), libraries=(), onnxruntime=None, sources=sources
    )


def has_gpu(here: Situation) -> bool:
    """Tell whether there is a GPU and a driver for it; GPUs that are not known count as there."""
    return here.facts.driver is not None and here.gpus != ()


def equivalence_key(here: Situation) -> Hashable:
    """Return what the rules look at: machines of one kind get the same answers, word for word."""
    facts = here.facts
    demands = tuple(
        (name, tuple((demand.by, str(demand.specifier)) for demand in rows))
        for name, rows in sorted(here.demands.items())
    )
    nvidia = frozenset(row.name for row in facts.packages if row.name in here.matrix.distributions)
    markers = tuple(sorted(here.markers.items()))
    left = here.gpus is None, here.gpus == (), bool(facts.gpus)
    odd = facts.platform.jetson is not None, here.torch and here.torch.name
    return wheels_key(here), here.abi, facts.driver, left, odd, demands, nvidia, markers


def wheels_key(here: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels looks at."""
    return gpus_key(here), here.driver_cuda


def gpus_key(here: Situation) -> Hashable:
    """Return what the choice of nvidia's wheels looks at, next to the driver."""
    demands = tuple(
        (name, tuple(sorted(str(demand.specifier) for demand in rows)))
        for name, rows in sorted(here.demands.items())
        if name in here.matrix.distributions
    )
    return here.platform, capabilities(here), here.facts.platform.libc, demands


def common_facts(situations: Sequence[Situation]) -> Facts:
    """Return what machines of one platform and Python have in common, at its least.

    The oldest driver and glibc, every kind of GPU, the lowest Python, and whatever requires
    something on any of them.
    """
    first = min(situations, key=lambda here: numbers(here.facts.python.version)).facts
    gpus = [gpu for here in situations for gpu in here.gpus or ()]
    kinds = sorted({(gpu.compute_capability or "", gpu.name or "") for gpu in gpus}, key=_gpu_key)
    by_name: dict[tuple[str, str, tuple[str, ...]], Package] = {}
    for here in situations:
        for package in here.facts.packages:
            by_name.setdefault((package.name, package.version, package.requires), package)
    return first._replace(
        platform=first.platform._replace(
            libc=oldest_libc(situations), distribution=None, container=None
        ),
        driver=_oldest_driver(situations),
        gpus=None
        if all(here.gpus is None for here in situations)
        else tuple(
            Gpu(compute_capability=number or None, name=name or None) for number, name in kinds
        ),
        python=first.python._replace(executable=None, environment=None, project=None),
        packages=tuple(by_name[key] for key in sorted(by_name)),
        environment={},
        sources={},
    )


def _gpu_key(kind: tuple[str, str]) -> tuple[tuple[int, ...], str]:
    return numbers(kind[0]), kind[1]


def oldest_libc(situations: Sequence[Situation]) -> str | None:
    """Return the oldest C library of these machines, None where it is known of none."""
    known = [here.facts.platform.libc for here in situations if here.facts.platform.libc]
    return min(known, key=lambda libc: numbers(libc.partition(" ")[2]), default=None)


def _oldest_driver(situations: Sequence[Situation]) -> Driver | None:
    drivers = [
        (numbers(here.driver_cuda or ""), numbers(driver.version or ""), driver)
        for here in situations
        if (driver := here.facts.driver) is not None
    ]
    return min(drivers, key=lambda row: row[:2])[2] if drivers else None
