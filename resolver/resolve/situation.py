"""A situation: facts and options in the terms of the matrix, as the rules need them."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force, marker_environment
from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, Gpu, Package
from ..facts.own_projects import without_tool_bounds
from ..facts.wheel_tags import abi
from ..matrix.model import INSTALLED, Build, DriverFloor, Matrix
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..plan.reasons import Consumer, Named
from ..versions import major, numbers, requirement
from .consumers import extras_in_force, find_consumers, torch_consumer
from .demands import Demand, demands_of
from .onnxruntime_installed import InstalledOnnxRuntime, find_onnxruntime
from .options import PlanOptions
from .torch_installed import InstalledTorch, installed_torch_of, with_known_requirements

_OF_TORCH = frozenset({TORCH, *DOMAIN_LIBRARIES, "cuda-toolkit"})


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
    onnxruntime: InstalledOnnxRuntime | None = None
    """The installed one that is to have the GPU, by whatever way."""

    def demanded(self, name: str) -> tuple[Demand, ...]:
        """Return what is required of the distribution `name`."""
        return self.demands.get(name, ())

    @property
    def installed_release(self) -> str | None:
        """Return the release of the onnxruntime that is installed for the GPU."""
        return self.onnxruntime.package.version if self.onnxruntime else None

    @property
    def other_way(self) -> InstalledOnnxRuntime | None:
        """Return what gives the GPU by another way than onnxruntime-gpu."""
        found = self.onnxruntime
        return found if found and found.package.name != GPU_BUILD else None

    def is_other_way(self, build: Build) -> bool:
        """Tell whether `build` stands for what gives the GPU by another way."""
        return self.other_way is not None and build.index_url == INSTALLED

    def distributions_of(self, build: Build) -> tuple[Package | Named, ...]:
        """Return the distributions that `build` is: onnxruntime-gpu, or those of another way."""
        if self.other_way and build.index_url == INSTALLED:
            return self.other_way.packages
        return (Named(CPU_BUILD if build.plugin else GPU_BUILD, build.version),)

    def judged(self, build: Build) -> Package | Named:
        """Return the distribution for which `build` is judged: what has the provider."""
        plugin = build.plugin
        return Named(plugin.name, plugin.version) if plugin else self.distributions_of(build)[-1]

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
        return row.windows if self.facts.platform.windows_driver else row.linux


def situation(facts: Facts, options: PlanOptions, matrix: Matrix) -> Situation:
    """Bring `facts` and `options` into the terms of `matrix`."""
    packages = map(without_tool_bounds, facts.packages)
    facts = facts._replace(packages=tuple(sorted(packages, key=lambda row: row.name)))
    platform = facts.platform.key
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
        onnxruntime=find_onnxruntime(facts, matrix, options),
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
    for name in matrix.distributions:
        for demand in demands.get(name, ()):
            required[demand.distribution or ""].add(name)
    others = find_consumers(facts, matrix, platform, required)
    if torch is None or torch.cuda is None:
        return others
    return (torch_consumer(torch, matrix, platform, required[TORCH]), *others)


def _driver_cuda(facts: Facts, matrix: Matrix) -> str | None:
    """Return the CUDA that the driver reports, or else the newest that its release supports.

    The first releases of a branch are below the floor of its CUDA's major, whatever they report:
    they support 11.0, and do not run what is built for 11.8. One that reports a newer major than
    its branch has does so by cuda-compat.
    """
    driver = facts.driver
    if driver is None or driver.version is None:
        return driver and driver.cuda
    release = numbers(driver.version)
    windows = facts.platform.windows_driver
    floors = {row.cuda: row.windows if windows else row.linux for row in matrix.floors}
    own = max((branch for branch in matrix.branches if branch <= release[0]), default=0)
    if driver.cuda is not None:
        floor = numbers(floors.get(major(driver.cuda)) or "")
        of_its_branch = major(matrix.branches.get(own, "0")) == major(driver.cuda)
        if not of_its_branch or floor[: len(release)] <= release:
            return driver.cuda
    for branch, cuda in sorted(matrix.branches.items(), reverse=True):
        floor = numbers(floors.get(major(cuda)) or "")
        # `--driver 580` is the branch, whatever its release.
        if branch <= release[0] and floor[: len(release)] <= release:
            return cuda
    return None


def _demands(
    facts: Facts, options: PlanOptions, matrix: Matrix, markers: Mapping[str, str]
) -> Mapping[str, tuple[Demand, ...]]:
    """Return what packages that stay installed require of each distribution.

    The builds of onnxruntime and the nvidia wheels do not count: a plan replaces them, and the
    matrix knows what they require.
    """
    staying = tuple(
        package
        for package in facts.packages
        if package.name not in matrix.owners and package.name not in matrix.distributions
    )
    environment = tuple(markers.items())
    extras = extras_in_force(facts.packages, frozenset(matrix.distributions), environment)
    installed = demands_of(staying, environment, tuple(extras.items()))
    if not options.requirements:
        return installed
    demands = dict(installed)
    for line in options.requirements:
        parsed = requirement(line.text)
        if parsed and is_in_force(parsed, markers, ""):
            name = canonicalize_name(parsed.name)
            demand = Demand(by=line, specifier=parsed.specifier)
            demands[name] = (*demands.get(name, ()), demand)
    return demands


def _only_of_torch(
    demands: Mapping[str, tuple[Demand, ...]], matrix: Matrix
) -> dict[str, tuple[Demand, ...]]:
    """Return `demands` without what others than torch require of nvidia wheels."""
    return {
        name: tuple(row for row in rows if row.distribution in _OF_TORCH)
        if name in matrix.distributions
        else rows
        for name, rows in demands.items()
    }


def cuda_major_runs(driver_cuda: str, cuda: str) -> bool:
    """Tell whether a driver for `driver_cuda` runs binaries of the CUDA major of `cuda`.

    Minor-version compatibility: any driver of that major or a newer one does. Source: CUDA
    Compatibility, https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    return numbers(driver_cuda)[0] >= int(major(cuda))
