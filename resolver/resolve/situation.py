"""A situation: facts and options in the terms of the matrix, as the rules need them."""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force, marker_environment
from ..facts.model import Facts, Gpu, Package
from ..facts.wheel_tags import abi
from ..matrix.model import INSTALLED, Build, DriverFloor, Matrix
from ..matrix.torch import COMPANIONS, TORCH
from ..plan.reasons import Consumer
from ..versions import major, numbers, requirement
from .consumers import extras_in_force, find_consumers, torch_consumer
from .options import PlanOptions
from .torch_installed import InstalledTorch, installed_torch_of, with_known_requirements

_OF_TORCH = frozenset({TORCH, *COMPANIONS, "cuda-toolkit"})


class Demand(NamedTuple):
    """What something requires of a distribution."""

    by: str
    """`fastembed 0.9.1`, or the user's requirements file."""
    specifier: SpecifierSet


class Situation(NamedTuple):
    """Facts and options as the rules need them. Made by `situation`."""

    facts: Facts
    options: PlanOptions
    matrix: Matrix
    platform: str
    """The matrix's key: `linux_x86_64`."""
    abi: str
    """The ABI tag of the target: `cp311`, `cp313t`."""
    gpus: tuple[Gpu, ...] | None
    """The GPUs that must be able to run the set; None: not known."""
    driver_cuda: str | None
    """The newest CUDA that the driver supports, as it reports or by its branch; None: not known."""
    markers: Mapping[str, str]
    demands: Mapping[str, tuple[Demand, ...]]
    """By canonical name: what packages that stay installed require of it."""
    torch: InstalledTorch | None
    """The torch that is installed, or tried as if it were."""
    consumers: tuple[Consumer, ...] = ()
    """The installed distributions that use CUDA, torch first."""

    def demanded(self, name: str) -> tuple[Demand, ...]:
        """Return what is required of the distribution `name`."""
        return self.demands.get(name, ())

    @property
    def installed_build(self) -> Build | None:
        """The installed onnxruntime-gpu where the shipped matrix does not hold it."""
        return next((build for build in self.matrix.builds if build.index_url == INSTALLED), None)

    def floor(self, cuda_major: str) -> str | None:
        """Return the oldest driver release for a CUDA major on this system."""
        row = next((row for row in self.matrix.floors if row.cuda == cuda_major), None)
        return self.driver_release(row) if row else None

    def driver_release(self, row: DriverFloor) -> str | None:
        """Return the driver release that a row of the matrix names for this system."""
        return row.windows if self.facts.platform.system == "windows" else row.linux


def situation(facts: Facts, options: PlanOptions, matrix: Matrix) -> Situation:
    """Bring `facts` and `options` into the terms of `matrix`."""
    facts = facts._replace(packages=tuple(sorted(facts.packages, key=lambda row: row.name)))
    platform = f"{facts.platform.system}_{facts.platform.machine}"
    facts, torch = _with_torch(facts, matrix, platform)
    markers = marker_environment(facts)
    demands = _demands(facts, options, matrix, markers)
    gpus = facts.gpus
    if gpus is not None:
        gpus = tuple(gpu for gpu in gpus if gpu.compute_capability not in options.ignored_gpus)
    return Situation(
        facts=facts,
        options=options,
        matrix=matrix,
        platform=platform,
        abi=abi(facts.python.version, free_threaded=facts.python.free_threaded),
        gpus=gpus,
        driver_cuda=_driver_cuda(facts, matrix),
        markers=markers,
        demands=_only_of_torch(demands, matrix) if options.conflicts else demands,
        torch=torch,
        consumers=_consumers(facts, matrix, platform, demands, torch),
    )


def _with_torch(facts: Facts, matrix: Matrix, platform: str) -> tuple[Facts, InstalledTorch | None]:
    """Return the installed torch, and `facts` with everything that it requires."""
    package = facts.package(TORCH)
    if package is None:
        return facts, None
    torch = installed_torch_of(package, matrix.torch, platform)
    others = [row for row in facts.packages if row.name != TORCH]
    packages = (*others, with_known_requirements(package, torch, others))
    return facts._replace(packages=tuple(sorted(packages, key=lambda row: row.name))), torch


def _consumers(
    facts: Facts,
    matrix: Matrix,
    platform: str,
    demands: Mapping[str, tuple[Demand, ...]],
    torch: InstalledTorch | None,
) -> tuple[Consumer, ...]:
    required: defaultdict[str, set[str]] = defaultdict(set)
    for name in matrix.distributions.keys() & demands.keys():
        for demand in demands[name]:
            required[demand.by.partition(" ")[0]].add(name)
    others = find_consumers(facts, matrix, platform, required)
    if torch is None or torch.cuda is None:
        return others
    return (torch_consumer(torch, matrix, platform, required[TORCH]), *others)


def _driver_cuda(facts: Facts, matrix: Matrix) -> str | None:
    """Return the CUDA that the driver reports, or else the newest that its release supports.

    The first releases of a branch are below the floor of its CUDA's major: they support 11.0, and
    do not run what is built for 11.8.
    """
    driver = facts.driver
    if driver is None or driver.cuda is not None or driver.version is None:
        return driver and driver.cuda
    release = numbers(driver.version)
    windows = facts.platform.system == "windows"
    floors = {row.cuda: row.windows if windows else row.linux for row in matrix.floors}
    for branch, cuda in sorted(matrix.branches.items(), reverse=True):
        floor = numbers(floors.get(major(cuda)) or "")
        # `--driver 580` is the branch, whatever its release.
        if branch <= release[0] and floor[: len(release)] <= release:
            return cuda
    return None


def _demands(
    facts: Facts, options: PlanOptions, matrix: Matrix, markers: Mapping[str, str]
) -> dict[str, tuple[Demand, ...]]:
    """Return what packages that stay installed require of each distribution.

    The builds of onnxruntime and the nvidia wheels do not count: a plan replaces them, and the
    matrix knows what they require.
    """
    staying = tuple(
        package
        for package in facts.packages
        if package.name not in matrix.owners and package.name not in matrix.distributions
    )
    demands: defaultdict[str, list[Demand]] = defaultdict(list)
    extras = extras_in_force(facts.packages, matrix, markers)
    active = _active_requirements(staying, tuple(markers.items()), tuple(extras.items()))
    for package, wanted in active:
        by = f"{package.name} {package.version}"
        demands[canonicalize_name(wanted.name)].append(Demand(by=by, specifier=wanted.specifier))
    for line in options.requirements:
        parsed = requirement(line)
        if parsed and is_in_force(parsed, markers, ""):
            demand = Demand(by=line, specifier=parsed.specifier)
            demands[canonicalize_name(parsed.name)].append(demand)
    return {name: tuple(rows) for name, rows in demands.items()}


def _only_of_torch(
    demands: Mapping[str, tuple[Demand, ...]], matrix: Matrix
) -> dict[str, tuple[Demand, ...]]:
    """Return `demands` without what others than torch require of nvidia wheels."""
    return {
        name: tuple(row for row in rows if row.by.partition(" ")[0] in _OF_TORCH)
        if name in matrix.distributions
        else rows
        for name, rows in demands.items()
    }


@lru_cache(maxsize=64)  # most unlocks are tried with the same packages
def _active_requirements(
    packages: tuple[Package, ...],
    environment: tuple[tuple[str, str], ...],
    extras: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[tuple[Package, Requirement], ...]:
    """Return every requirement that is in force, those behind extras that a package requires too.

    `extras` are those in force by what is installed (`extras_in_force`). torch 2.11 and newer pins
    its nvidia wheels through `cuda-toolkit[cublas,…]==13.0.2`.
    """
    markers = dict(environment)
    active: list[tuple[Package, Requirement]] = []
    by_name = {package.name: package for package in packages}
    waiting = [(package, "") for package in packages]
    waiting += [
        (by_name[name], extra) for name, rows in extras for extra in rows if name in by_name
    ]
    visited: set[tuple[str, str]] = set()
    while waiting:
        package, extra = waiting.pop()
        if (package.name, extra) in visited:
            continue
        visited.add((package.name, extra))
        for wanted in filter(None, map(requirement, package.requires)):
            if not is_in_force(wanted, markers, extra):
                continue
            if extra and is_in_force(wanted, markers, ""):
                continue  # in force without the extra, so it is in `active` already
            active.append((package, wanted))
            provider = by_name.get(canonicalize_name(wanted.name))
            if provider is not None:
                waiting.extend((provider, name) for name in sorted(wanted.extras))
    return tuple(active)


def cuda_major_runs(driver_cuda: str, cuda: str) -> bool:
    """Tell whether a driver for `driver_cuda` runs binaries of the CUDA major of `cuda`.

    Minor-version compatibility: any driver of that major or a newer one does. Source: CUDA
    Compatibility, https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    return numbers(driver_cuda)[0] >= int(major(cuda))
