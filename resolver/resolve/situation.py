"""A situation: facts and options in the terms of the matrix, as the rules need them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple, cast

from ..facts.markers import marker_environment
from ..facts.model import CPU_BUILD, GPU_BUILD, Facts, Gpu, Package
from ..facts.own_projects import without_tool_bounds
from ..facts.wheel_tags import abi
from ..matrix.model import INSTALLED, Build, DriverFloor, Matrix
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..plan.reasons import Consumer, Named
from ..versions import major, numbers
from .consumers import find_consumers, torch_consumer
from .environment import Demand, Demands, Environment
from .onnxruntime_installed import InstalledOnnxRuntime, find_onnxruntime
from .options import PlanOptions
from .torch_installed import InstalledTorch, installed_torch_of, with_known_requirements

_TOOLKIT = "cuda-toolkit"
OF_TORCH = frozenset({TORCH, *DOMAIN_LIBRARIES, _TOOLKIT})


class Situation(NamedTuple):
    """Facts and options as the rules need them. Made by `situation_of`."""

    facts: Facts
    options: PlanOptions
    matrix: Matrix
    platform: str
    """The matrix's key: `linux_x86_64`."""
    abi: str
    """The ABI tag of the target: `cp311`, `cp313t`."""
    gpus: tuple[Gpu, ...] | None
    """The GPUs that must be able to run the packages; None: not known."""
    driver_cuda: str | None
    """The newest CUDA that the driver supports, as it reports or by its branch; None: not known."""
    markers: Mapping[str, str]
    environment: Environment
    """All that is installed, and what it requires."""
    demands: Mapping[str, tuple[Demand, ...]]
    """By canonical name: what counts of the requirements of it."""
    torch: InstalledTorch | None
    """The torch that is installed, or tried as if it were."""
    consumers: tuple[Consumer, ...] = ()
    """The installed distributions that use CUDA, torch first."""
    onnxruntime: InstalledOnnxRuntime | None = None
    """The installed one that is to have the GPU: onnxruntime-gpu, or an alternative."""

    def package(self, name: str) -> Package | None:
        """Return the installed distribution of this canonical name, or None."""
        return cast("Package | None", self.environment.installed.get(name))

    def demanded(self, name: str) -> tuple[Demand, ...]:
        """Return what is required of the distribution `name`."""
        return self.demands.get(name, ())

    @property
    def moving_with_torch(self) -> frozenset[str]:
        """Return `cuda-toolkit` where torch alone requires it, else nothing.

        Each release of torch requires its own of that, whose extras pin NVIDIA's wheels.
        """
        askers = {demand.distribution for demand in self.environment.demanded(_TOOLKIT)}
        return frozenset({_TOOLKIT} if askers == {TORCH} else ())

    @property
    def installed_release(self) -> str | None:
        """Return the release of the onnxruntime that is installed for the GPU."""
        return self.onnxruntime.package.version if self.onnxruntime else None

    @property
    def alternative_provider(self) -> InstalledOnnxRuntime | None:
        """Return what provides the GPU in place of onnxruntime-gpu."""
        found = self.onnxruntime
        return found if found and found.package.name != GPU_BUILD else None

    def uses_alternative_provider(self, build: Build) -> bool:
        """Return whether `build` stands for the alternative provider."""
        return self.alternative_provider is not None and build.index_url == INSTALLED

    def distributions_of(self, build: Build) -> tuple[Package | Named, ...]:
        """Return the distributions of `build`: onnxruntime-gpu, or those of the alternative."""
        if self.alternative_provider and build.index_url == INSTALLED:
            return self.alternative_provider.packages
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

    def driver_release(self, floor: DriverFloor) -> str | None:
        """Return the driver release that a row of the matrix names for this system."""
        return floor.windows if self.facts.platform.windows_driver else floor.linux


def situation_of(facts: Facts, options: PlanOptions, matrix: Matrix) -> Situation:
    """Bring `facts` and `options` into the terms of `matrix`."""
    return _situation(facts, options, matrix, None)


def changed(
    situation: Situation, *, facts: Facts | None = None, options: PlanOptions | None = None
) -> Situation:
    """Return `situation` with other facts or options; what these do not touch is taken over."""
    return _situation(
        facts or situation.facts, options or situation.options, situation.matrix, situation
    )


def _situation(
    facts: Facts, options: PlanOptions, matrix: Matrix, like: Situation | None
) -> Situation:
    platform, torch = facts.platform.key, like.torch if like else None
    same = like is not None and facts.packages is like.facts.packages and platform == like.platform
    if not same:
        bounded = map(without_tool_bounds, facts.packages)
        packages = tuple(sorted(bounded, key=lambda package: package.name))
        facts, torch = _with_torch(facts._replace(packages=packages), matrix, platform)
    markers = marker_environment(facts)
    environment = _environment(facts, markers, options, like)
    gpus = facts.gpus
    if gpus is not None:
        gpus = tuple(gpu for gpu in gpus if gpu.compute_capability not in options.ignored_gpus)
    if like and same and environment is like.environment:
        consumers = like.consumers
    elif like and markers == like.markers and _is_torch_alone(environment, like.environment):
        others = tuple(consumer for consumer in like.consumers if consumer.name != TORCH)
        consumers = (*_torch_as_consumer(torch, matrix, platform, environment), *others)
    else:
        consumers = _consumers(facts, matrix, platform, environment, torch)
    return Situation(
        facts=facts,
        options=options,
        matrix=matrix,
        platform=platform,
        abi=abi(facts.python.version, free_threaded=facts.python.free_threaded),
        gpus=gpus,
        driver_cuda=driver_cuda(facts, matrix),
        markers=markers,
        environment=environment,
        demands=Demands(environment, partial(_counts, matrix, options.conflicts)),
        torch=torch,
        consumers=consumers,
        onnxruntime=find_onnxruntime(facts, matrix, options),
    )


def _environment(
    facts: Facts, markers: Mapping[str, str], options: PlanOptions, like: Situation | None
) -> Environment:
    if like is None:
        return Environment(facts.packages, markers, options.requirements)
    found = like.environment
    if markers != like.markers or options.requirements != like.options.requirements:
        found = found.on(markers, options.requirements)
    if facts.packages is not like.facts.packages:
        names = {package.name for package in facts.packages}
        new = [
            package
            for package in facts.packages
            if found.installed.get(package.name) is not package
        ]
        found = found.changed(found.installed.keys() - names, new)
    return found


def _counts(matrix: Matrix, conflicts: bool, demand: Demand) -> bool:  # noqa: FBT001 - for partial
    """Return whether a requirement counts against what a plan takes.

    Those of the builds of onnxruntime and of the nvidia wheels do not: a plan replaces them, and
    the matrix knows what they require. Where `conflicts` are allowed only torch has a say, and the
    user.
    """
    by = demand.distribution
    if conflicts:
        return by is None or by in OF_TORCH
    return by not in matrix.owners and by not in matrix.distributions


def _with_torch(facts: Facts, matrix: Matrix, platform: str) -> tuple[Facts, InstalledTorch | None]:
    """Return the installed torch, and `facts` with everything that it requires."""
    installed = facts.package(TORCH)
    if installed is None:
        return facts, None
    torch = installed_torch_of(installed, matrix.torch, platform)
    others = [package for package in facts.packages if package.name != TORCH]
    packages = (*others, with_known_requirements(installed, torch, others))
    return facts._replace(packages=tuple(sorted(packages, key=lambda package: package.name))), torch


def _consumers(
    facts: Facts,
    matrix: Matrix,
    platform: str,
    environment: Environment,
    torch: InstalledTorch | None,
) -> tuple[Consumer, ...]:
    required: defaultdict[str, set[str]] = defaultdict(set)
    for name in matrix.distributions:
        for demand in environment.demanded(name):
            required[demand.distribution or ""].add(name)
    others = find_consumers(facts, matrix, platform, required)
    return (*_torch_as_consumer(torch, matrix, platform, environment), *others)


def _torch_as_consumer(
    torch: InstalledTorch | None, matrix: Matrix, platform: str, environment: Environment
) -> Iterator[Consumer]:
    if torch is not None and torch.cuda is not None:
        required = [
            name
            for name in matrix.distributions
            if any(demand.distribution == TORCH for demand in environment.demanded(name))
        ]
        yield torch_consumer(torch, matrix, platform, required)


def _is_torch_alone(environment: Environment, before: Environment) -> bool:
    """Return whether two environments differ in torch, and what is of it, alone."""
    names = {*environment.installed, *before.installed} - OF_TORCH
    return all(environment.installed.get(name) is before.installed.get(name) for name in names)


def with_driver_cuda(facts: Facts, matrix: Matrix) -> Facts:
    """Return `facts` with the CUDA that the driver's version supports, where nobody asked it."""
    driver = facts.driver
    if driver is None or driver.version is None or driver.cuda is not None:
        return facts
    return facts._replace(driver=driver._replace(cuda=driver_cuda(facts, matrix)))


def driver_cuda(facts: Facts, matrix: Matrix) -> str | None:
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


def cuda_major_runs(driver_cuda: str, cuda: str) -> bool:
    """Return whether a driver for `driver_cuda` runs binaries of the CUDA major of `cuda`.

    Minor-version compatibility: any driver of that major or a newer one does. Source: CUDA
    Compatibility, https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
    """
    return numbers(driver_cuda)[0] >= int(major(cuda))
