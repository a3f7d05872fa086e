"""What the rules look at: facts and wishes, brought into the matrix's own terms."""

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
from ..matrix.model import DriverFloor, Matrix
from ..matrix.torch import TORCH
from ..versions import major, numbers, requirement
from .options import PlanOptions
from .torch_installed import InstalledTorch, installed_torch_of, with_known_requirements


class Demand(NamedTuple):
    """What something requires of a distribution."""

    by: str
    """`fastembed 0.9.1`, or the user's requirements file."""
    specifier: SpecifierSet


class Situation(NamedTuple):
    """Facts and wishes as the rules need them. Made by `situation`."""

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
    """The CUDA that the driver speaks, by its own word or by its branch; None: not known."""
    markers: Mapping[str, str]
    demands: Mapping[str, tuple[Demand, ...]]
    """By canonical name: what stays installed requires of it."""
    torch: InstalledTorch | None
    """The torch that is installed, or that is tried."""

    def demanded(self, name: str) -> tuple[Demand, ...]:
        """Return what is required of the distribution `name`."""
        return self.demands.get(name, ())

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
        demands=_demands(facts, options, matrix, markers),
        torch=torch,
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


def _driver_cuda(facts: Facts, matrix: Matrix) -> str | None:
    """Return the CUDA that the driver speaks, or else the newest that its release is enough for.

    The first releases of a branch are below the floor of its CUDA's major: they speak 11.0, and do
    not run what is built for 11.8.
    """
    if facts.driver is None:
        return None
    if facts.driver.cuda is not None:
        return facts.driver.cuda
    if facts.driver.version is None:
        return None
    release = numbers(facts.driver.version)
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
    """Return what stays installed requires of each distribution.

    The builds of onnxruntime and the nvidia wheels themselves do not count: they are what a plan
    replaces, and the matrix knows what they require.
    """
    staying = tuple(
        package
        for package in facts.packages
        if package.name not in matrix.owners and package.name not in matrix.distributions
    )
    demands: defaultdict[str, list[Demand]] = defaultdict(list)
    for package, wanted in _active_requirements(staying, tuple(markers.items())):
        by = f"{package.name} {package.version}"
        demands[canonicalize_name(wanted.name)].append(Demand(by=by, specifier=wanted.specifier))
    for line in options.requirements:
        wanted_line = requirement(line)
        if wanted_line and is_in_force(wanted_line, markers, ""):
            demand = Demand(by=line, specifier=wanted_line.specifier)
            demands[canonicalize_name(wanted_line.name)].append(demand)
    return {name: tuple(rows) for name, rows in demands.items()}


@lru_cache(maxsize=64)  # the same packages are asked about for every change that might unlock more
def _active_requirements(
    packages: tuple[Package, ...], environment: tuple[tuple[str, str], ...]
) -> tuple[tuple[Package, Requirement], ...]:
    """Return every requirement that is in force, those behind extras that something asks for too.

    torch 2.11 and newer pins its nvidia wheels only so: through `cuda-toolkit[cublas,…]==13.0.2`.
    """
    markers = dict(environment)
    found: list[tuple[Package, Requirement]] = []
    by_name = {package.name: package for package in packages}
    waiting = [(package, "") for package in packages]
    seen: set[tuple[str, str]] = set()
    while waiting:
        package, extra = waiting.pop()
        if (package.name, extra) in seen:
            continue
        seen.add((package.name, extra))
        for text in package.requires:
            wanted = requirement(text)
            if wanted is None or not is_in_force(wanted, markers, extra):
                continue
            if extra and is_in_force(wanted, markers, ""):
                continue  # in force without the extra, so it was yielded already
            found.append((package, wanted))
            provider = by_name.get(canonicalize_name(wanted.name))
            if provider is not None:
                waiting.extend((provider, name) for name in sorted(wanted.extras))
    return tuple(found)


def cuda_major_runs(driver_cuda: str, cuda: str) -> bool:
    """Tell whether a driver that speaks `driver_cuda` runs binaries of the CUDA major of `cuda`.

    Minor-version compatibility: any driver of that major or a newer one does. Source: CUDA
    Compatibility, https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    return numbers(driver_cuda)[0] >= int(major(cuda))
