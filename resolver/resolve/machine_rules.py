"""The rules of the machine and its Python: what these exclude, whatever is installed.

A rule is a small function `(candidate, situation) -> reasons`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.model import OLDEST
from ..matrix.tensorrt import library_major
from ..plan.reasons import Reason, reason
from ..versions import major, numbers
from .candidate import Candidate
from .gpu_code import capabilities, no_gpu_code, runs_on
from .release_checks import too_old_driver, too_old_glibc, unsupported_gpu
from .situation import Situation
from .tensorrt import is_of_system, tensorrt_for


def check_gpu_present(_: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a GPU that is not ignored."""
    if situation.gpus == ():
        yield reason("no-gpu-left" if situation.facts.gpus else "no-gpu")


def check_platform(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a build for this system, and a system that such wheels run on."""
    platform = situation.facts.platform
    if platform.jetson is not None:
        yield reason("jetson")
    if platform.libc is not None and platform.libc.startswith("musl"):
        yield reason("musl", libc=platform.libc)
    elif candidate.build.platform != situation.platform:
        yield reason("no-wheel-platform", platform=situation.platform)
    elif refusal := too_old_glibc(candidate.build.glibc, situation):
        yield refusal


def check_python(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a wheel for this Python."""
    if situation.facts.python.implementation != "cpython":
        yield reason("not-cpython", implementation=situation.facts.python.implementation)
    elif candidate.wheel is None and candidate.build.platform == situation.platform:
        yield reason("no-wheel-python", python=situation.abi)


def check_python_age(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a Python that pip and uv install into, but for what is installed already."""
    python = situation.facts.python.version
    if numbers(python) < OLDEST and candidate.version != situation.installed_release:
        oldest = ".".join(map(str, OLDEST))
        yield reason("python-too-old", python=python, oldest=oldest)


def check_driver(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a driver that runs the CUDA major of the build."""
    driver = situation.facts.driver
    if driver is None:
        yield reason("no-driver")
    elif situation.driver_cuda is None and driver.error is not None:
        yield reason("driver-unreadable", error=driver.error_evidence)
    elif situation.driver_cuda is None:
        yield reason("driver-unknown")
    elif refusal := too_old_driver(candidate.build.cuda, situation):
        yield refusal
    if refusal := unsupported_gpu(situation):
        yield refusal


def check_gpu_code(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for code in the provider that every GPU can run."""
    build = candidate.build
    for capability in capabilities(situation) if build.platform == situation.platform else ():
        how = runs_on(build.sass, build.ptx, capability)
        if how == "no":
            yield no_gpu_code(capability, build)
        elif (
            how == "ptx"
            and situation.driver_cuda is not None
            and numbers(situation.driver_cuda)[:2] < numbers(build.cuda)[:2]
        ):
            yield reason(
                "ptx-needs-driver",
                gpu=capability,
                cuda=build.cuda,
                driver_cuda=situation.driver_cuda,
            )


def check_tensorrt(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for a TensorRT that the build links, and GPUs that it supports, if the user wants it."""
    build = candidate.build
    wanted = library_major(build.tensorrt or "")
    if situation.options.provider != "tensorrt" or build.platform != situation.platform:
        return
    component = tensorrt_for(build, situation)
    if wanted is None:
        yield reason("tensorrt-no-provider")
    elif component is None and not is_of_system(wanted, situation):
        yield reason("tensorrt-no-wheel", library=str(build.tensorrt), cuda=major(build.cuda))
    if component is None:
        return
    release = component.release
    old = None if component.installed else too_old_glibc(release.glibc, situation)
    if old:
        yield old
    floor = next(row.capability for row in situation.matrix.tensorrt if row.name == release.name)
    for gpu in capabilities(situation):
        if numbers(gpu) < numbers(floor):
            wheel = f"{release.name} {release.version}"
            yield reason("tensorrt-gpu-too-old", gpu=gpu, floor=floor, wheel=wheel)


def check_plugin(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for GPUs that the provider of a plugin takes: it gives no device for another one.

    Seen with 0.5.0 of TensorRT-RTX on an H100, 9.0, for which its library has code.
    """
    plugin = candidate.build.plugin
    if plugin is None or not plugin.capabilities or plugin.platform != situation.platform:
        return
    taken = plugin.capabilities
    for gpu in capabilities(situation):
        if not any(gpu in specifier for specifier in taken):
            named = ", ".join(str(specifier).removeprefix("==") for specifier in taken)
            yield reason("provider-refuses-gpu", provider=plugin.provider, gpu=gpu, taken=named)


def check_libraries(candidate: Candidate, _: Situation) -> Iterator[Reason]:
    """Ask for nvidia wheels with every library, for this platform and these GPUs."""
    yield from candidate.components.reasons
