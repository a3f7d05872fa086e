"""What an installed set can serve: the driver that it needs, the GPUs, and what speaks against it.

Asked of packages on a machine or in a lock; the rules ask of packages that could be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..facts.gpu_names import neighbours
from ..facts.model import GPU_BUILD, Facts, OnnxRuntime, Package, is_onnxruntime
from ..matrix.model import Build, Matrix, Release, row_of
from ..matrix.torch import TORCH
from ..plan.model import Plan, RunsOn
from ..plan.reasons import Consumer, Reason, finding, reason
from ..versions import major, numbers
from .candidate import without_wheels
from .choice import is_installed
from .dependencies import wheel_for
from .gpu_code import MACHINE_CODE_ONLY, capabilities, code_of_file, runs_on
from .options import PlanOptions
from .release_checks import too_old_driver
from .resolver import resolve
from .rules import BUILD_RULES
from .situation import Situation, situation_of
from .unknown_releases import with_installed_releases

_Targets = tuple[tuple[str, ...], tuple[str, ...]]
"""Of machine code, and of PTX."""


class Serving(NamedTuple):
    """What an installed set can serve."""

    release: str | None
    """Of onnxruntime-gpu; None: it is not installed, or nothing is known of it."""
    cuda: str | None
    """The newest CUDA major in it: onnxruntime-gpu's, torch's and others'."""
    driver: str | None
    """The oldest driver release that runs this CUDA."""
    gpus: tuple[str, ...]
    """The compute capabilities that all of it has code for, lowest first."""
    cudnn: str | None
    """The version of the installed wheel of cuDNN, or the major that the release needs."""
    size: int
    """Bytes of those of its wheels that the matrix holds."""
    consumers: tuple[Consumer, ...]
    """What else uses CUDA."""


def serving(facts: Facts, matrix: Matrix, known: Sequence[str]) -> Serving:
    """Return what is installed in `facts` can serve, of the compute capabilities `known`."""
    situation, build = _installed(facts, matrix)
    majors = {
        consumer.cuda for consumer in situation.consumers if consumer.cuda and not consumer.idle
    }
    majors |= {major(build.cuda)} if build else set()
    cuda = max(majors, key=numbers, default=None)
    code = list(_code(situation, build))
    wheels = list(_wheels(situation))
    cudnn = [wheel.version for wheel in wheels if wheel.name.startswith("nvidia-cudnn")]
    able = (gpu for gpu in known if build and not any(_lacks(targets, gpu) for _, targets in code))
    return Serving(
        release=build.version if build else None,
        cuda=cuda,
        driver=situation.floor(cuda) if cuda else None,
        gpus=tuple(sorted(able, key=numbers)),
        cudnn=next(iter(cudnn), build.cudnn if build else None),
        size=sum(wheel.size for wheel in wheels) + _size(situation, build),
        consumers=situation.consumers,
    )


def selection_runs_on(
    plan: Plan, facts: Facts, matrix: Matrix, known: Sequence[str]
) -> RunsOn | None:
    """Return which drivers and GPUs the packages of `plan` support, of the capabilities `known`.

    None where there is no set, or its onnxruntime is no build of which that is known.
    """
    names = {wheel.name for wheel in plan.selection}
    kept = (package for package in facts.packages if package.name not in names | {*plan.uninstall})
    installed = {(package.name, package.version): package for package in facts.packages}
    selected = (
        installed.get((wheel.name, wheel.version)) or Package(wheel.name, wheel.version)
        for wheel in plan.selection
    )
    installs = any(is_onnxruntime(wheel.name) for wheel in plan.install)
    build = OnnxRuntime(GPU_BUILD, plan.release) if installs else facts.onnxruntime
    after = facts._replace(packages=(*kept, *selected), onnxruntime=build)
    if plan.install:  # it brings its own libraries
        after = after._replace(libraries=())
    serves = serving(after, matrix, known)
    if not plan.selection or serves.release is None or serves.driver is None:
        return None
    return RunsOn(serves.driver, neighbours(serves.gpus, known))


def against(facts: Facts, matrix: Matrix) -> tuple[Reason, ...]:
    """Return why what is installed in `facts` cannot use the GPU of their machine."""
    situation, build = _installed(facts, matrix)
    if build is None:
        return (reason("gpu-build-absent"),)
    found = [
        why for rule in BUILD_RULES for why in rule(without_wheels(build, situation), situation)
    ]
    drivers = (
        too_old_driver(consumer.cuda, situation)
        for consumer in situation.consumers
        if consumer.cuda
    )
    found += filter(None, drivers)
    found += (
        reason("library-no-gpu-code", distribution=name, gpu=gpu)
        for name, code in list(_code(situation, build))[1:]
        for gpu in capabilities(situation)
        if _lacks(code, gpu)
    )
    return tuple(dict.fromkeys(found))


def on_machine(facts: Facts, machine: Facts) -> Facts:
    """Return what is installed in `facts` on the driver and the GPUs of a machine."""
    return facts._replace(
        platform=facts.platform._replace(jetson=machine.platform.jetson),
        driver=machine.driver,
        gpus=machine.gpus,
        sources=machine.sources,
    )


def plan_on_machine(facts: Facts, machine: Facts, options: PlanOptions, matrix: Matrix) -> Plan:
    """Return the plan for what is installed in `facts` on a machine.

    Nothing of it runs on another processor; Windows runs it in its Linux.
    """
    platform_is_known = machine.sources.get("platform") != ""
    built, wanted = facts.platform.machine, machine.platform.machine
    if platform_is_known and built != wanted:
        other = finding("other-processor", "error", machine=wanted, built=built)
        return Plan("impossible", matrix.date, matrix.digest, findings=(other,))
    plan = resolve(on_machine(facts, machine), options, matrix, unlocking=False)
    # Whether the GPUs are known is asked of any.
    said = tuple(each for each in plan.findings if each.code != "gpus-unknown")
    return plan._replace(findings=said)


def _installed(facts: Facts, matrix: Matrix) -> tuple[Situation, Build | None]:
    matrix, _ = with_installed_releases(facts, matrix, PlanOptions())
    situation = situation_of(facts, PlanOptions(), matrix)
    builds = (build for build in matrix.builds if build.platform == situation.platform)
    return situation, next((build for build in builds if is_installed(build, situation)), None)


def _code(situation: Situation, build: Build | None) -> Iterator[tuple[str, _Targets]]:
    """Yield the GPU code of what is installed, the build's first: machine code, and PTX."""
    if build:
        yield f"{GPU_BUILD} {build.version}", (build.sass, build.ptx)
    for release in _wheels(situation):
        code = row_of(situation.matrix.distributions[release.name].code, release)
        if code:
            ptx = () if release.name.startswith(MACHINE_CODE_ONLY) else code.ptx
            yield f"{release.name} {release.version}", (code.sass, ptx)
    yield from _code_of_files(situation, build)
    torch = situation.torch and situation.torch.build
    if torch and torch.sass:
        yield f"{TORCH} {torch.version}", (torch.sass, torch.ptx)


def _code_of_files(situation: Situation, build: Build | None) -> Iterator[tuple[str, _Targets]]:
    """Yield the GPU code of the libraries that the system has for `build`, as far as it is known.

    Where a short version leaves several possible, what any of them has counts.
    """
    files = {library.name: library.version for library in reversed(situation.facts.libraries)}
    for need in build.needs if build else ():
        distribution = situation.matrix.distributions.get(need.distribution or "")
        version = files.get(need.library)
        if distribution is None or version is None or situation.facts.package(distribution.name):
            continue
        blocks = code_of_file(version, distribution, situation.platform)
        ptx = () if distribution.name.startswith(MACHINE_CODE_ONLY) else blocks
        if blocks:
            sass = tuple(target for block in blocks for target in block.sass)
            compiled = tuple(target for block in ptx for target in block.ptx)
            yield f"{need.library} {version}", (sass, compiled)


def _lacks(code: _Targets, gpu: str) -> bool:
    return runs_on(*code, gpu) == "no"


def _wheels(situation: Situation) -> Iterator[Release]:
    """Yield the rows of the installed nvidia wheels."""
    for package in situation.facts.packages:
        distribution = situation.matrix.distributions.get(package.name)
        for release in distribution.releases if distribution else ():
            if (release.version, release.platform) == (package.version, situation.platform):
                yield release


def _size(situation: Situation, build: Build | None) -> int:
    """Return the bytes of the wheels of onnxruntime-gpu and torch, as far as they are known."""
    own = wheel_for(build, situation.abi) if build else None
    torch = situation.torch.build.wheels if situation.torch and situation.torch.build else ()
    fitting = [wheel.size for wheel in torch if wheel.python in {situation.abi, "py3"}]
    return (own.size if own else 0) + sum(fitting[:1])
