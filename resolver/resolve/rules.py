"""The rules: why a release of onnxruntime-gpu cannot be used here.

A rule is a small function `(candidate, situation) -> reasons`. What would allow a newer release is
found by the same rules with one fact changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, reduce

from packaging.specifiers import SpecifierSet

from ..facts.model import CPU_BUILD, GPU_BUILD, OLDEST
from ..matrix.model import Build
from ..matrix.torch import TORCH
from ..plan.reasons import Reason, reason
from ..versions import allows, major, numbers
from .candidate import Candidate, make_candidate, without_wheels
from .consumers import holders, other_cuda
from .dependencies import dependencies_of
from .gpu_code import capabilities, check_gpu_code, runs_on
from .msvc import why_msvc_runtime
from .plugins import check_plugin
from .release_checks import too_old_driver, too_old_glibc, unsupported_gpu
from .situation import Situation
from .tensorrt import check_tensorrt
from .torch_rules import against_torch

Rule = Callable[[Candidate, Situation], Iterator[Reason]]


def reasons_against(subject: Candidate, here: Situation) -> tuple[Reason, ...]:
    """Return every reason why `subject` cannot be used here, in the order of the rules."""
    return tuple(refusal for rule in RULES for refusal in rule(subject, here))


def check_gpu_present(_: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for a GPU that is not ignored."""
    if here.gpus == ():
        yield reason("no-gpu-left" if here.facts.gpus else "no-gpu")


def check_driver(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for a driver that runs the CUDA major of the build."""
    driver = here.facts.driver
    if driver is None:
        yield reason("no-driver")
    elif here.driver_cuda is None and driver.error is not None:
        yield reason("driver-unreadable", error=driver.error_evidence)
    elif here.driver_cuda is None:
        yield reason("driver-unknown")
    elif refusal := too_old_driver(subject.build.cuda, here):
        yield refusal
    if refusal := unsupported_gpu(here):
        yield refusal


def check_platform(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for a build for this system, and a system that such wheels run on."""
    platform = here.facts.platform
    if platform.jetson is not None:
        yield reason("jetson")
    if platform.libc is not None and platform.libc.startswith("musl"):
        yield reason("musl", libc=platform.libc)
    elif subject.build.platform != here.platform:
        yield reason("no-wheel-platform", platform=here.platform)
    elif refusal := too_old_glibc(subject.build.glibc, here):
        yield refusal


def check_python(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for a wheel for this Python."""
    if here.facts.python.implementation != "cpython":
        yield reason("not-cpython", implementation=here.facts.python.implementation)
    elif subject.wheel is None and subject.build.platform == here.platform:
        yield reason("no-wheel-python", python=here.abi)


def check_python_age(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for a Python that pip and uv install into, but for what is installed already."""
    python = here.facts.python.version
    if numbers(python) < OLDEST and subject.version != here.installed_release:
        oldest = ".".join(map(str, OLDEST))
        yield reason("python-too-old", python=python, oldest=oldest)


def check_torch(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask that torch can be loaded into the same process."""
    if subject.build.platform == here.platform and subject.build.cudnn:
        yield from against_torch(subject.build, here)


def check_consumers(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask that those who use CUDA can share cuDNN with the build.

    One that finds no CUDA of its own here does not make an installed release wrong. One that finds
    its cuDNN in an installed wheel, and declares nothing, keeps the major of that wheel.
    """
    apart = subject.build.platform != here.platform or not subject.build.cudnn
    if apart or here.options.conflicts:
        return
    for consumer in here.consumers:
        if other_cuda(subject.build, consumer) and not consumer.idle:
            yield reason(
                "consumer-other-cuda",
                by=consumer.by,
                cuda=str(consumer.cuda),
                cudnn=subject.build.cudnn,
                needs=major(subject.build.cuda),
            )
    cuda = major(subject.build.cuda)
    wheel = here.facts.package(f"nvidia-cudnn-cu{cuda}")
    if wheel is None or major(wheel.version) == subject.build.cudnn:
        return
    using = tuple(
        row.by
        for row in here.consumers
        if row.why.code == "consumer-read" and (row.cuda, row.cudnn) == (cuda, major(wheel.version))
    )
    if using:
        installed = f"{wheel.name} {wheel.version}"
        yield reason(
            "consumer-other-cudnn", by=using, cudnn=subject.build.cudnn, installed=installed
        )


def check_libraries(subject: Candidate, _: Situation) -> Iterator[Reason]:
    """Ask for nvidia wheels with every library, for this platform and these GPUs."""
    yield from subject.components.reasons


def check_shared_folders(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Reject wheels that own the same files as a distribution that must stay.

    The user's own files may require one that is not installed yet.
    """
    for component in subject.components.chosen:
        for rival in rivals(component.release.name, here):
            installed = here.facts.package(rival) is not None
            name = component.release.name
            requiring = tuple(
                demand.by
                for demand in here.demanded(rival)
                if installed or demand.distribution is None
            )
            using = holders(here.matrix.distributions[rival], here.consumers)
            if requiring:
                yield reason("folder-owned", distribution=name, rival=rival, by=requiring)
            elif installed and using and not here.options.conflicts:
                yield reason("folder-used", distribution=name, rival=rival, by=using)


def rivals(name: str, here: Situation) -> tuple[str, ...]:
    """Return the distributions that own the same files as `name`."""
    return tuple(
        other
        for owners in here.matrix.shared.values()
        if name in owners
        for other in owners
        if other != name
    )


def check_numpy(subject: Candidate, _: Situation) -> Iterator[Reason]:
    """Ask for a numpy that every package allows, if it must change."""
    if isinstance(subject.numpy, Reason):
        yield subject.numpy


def check_requirements(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask that installed packages allow this release and what it requires."""
    for name in (CPU_BUILD, GPU_BUILD):
        for demand in here.demanded(name):
            if not allows(demand.specifier, subject.version):
                yield reason("demand-conflict", by=demand.by, requires=f"{name}{demand.specifier}")
    if subject.build.platform != here.platform:
        return
    for name, needed in dependencies_of(subject.build, here).items():
        demands = here.demanded(name)
        installed = here.facts.package(name)
        if installed is not None and (name == "numpy" or allows(needed, installed.version)):
            continue
        # Of a thousand demands most are the same text, and `requirement` makes one object of it.
        different = {id(demand.specifier): demand.specifier for demand in demands}
        refused = {key for key, wanted in different.items() if not _overlap(needed, wanted)}
        refusing = [demand for demand in demands if id(demand.specifier) in refused]
        together = reduce(SpecifierSet.__and__, different.values(), needed)
        if not refusing and not _overlap(needed, together):
            refusing = [*demands]  # each allows some versions, and all of them none
        for demand in refusing:
            yield reason(
                "requirement-conflict",
                needs=f"{name}{needed}",
                by=demand.by,
                requires=f"{name}{demand.specifier}",
            )


@lru_cache(maxsize=4096)  # the same few for every release, on every machine of a fleet
def _overlap(left: SpecifierSet, right: SpecifierSet) -> bool:
    """Tell whether some version satisfies both.

    Tried are the versions that they name, the next after each, and one below and above all: enough
    for bounds and pins.
    """
    named = [spec.version.removesuffix(".*") for spec in (*left, *right)]
    both = left & right
    points = [point for version in named for point in (version, f"{version}.0.1", f"{version}.1")]
    return any(both.contains(point, prereleases=True) for point in ["0", *points, "9999"])


def check_options(subject: Candidate, here: Situation) -> Iterator[Reason]:
    """Ask for the release and the CUDA of the user's options."""
    options = here.options
    if options.onnxruntime and not allows(SpecifierSet(options.onnxruntime), subject.version):
        yield reason("not-wished", wish=f"--ort {options.onnxruntime}")
    if options.cuda is not None and major(subject.build.cuda) != options.cuda:
        yield reason("not-wished", wish=f"--cuda {options.cuda}")


BUILD_RULES: tuple[Rule, ...] = (
    check_gpu_present,
    check_platform,
    check_python,
    check_python_age,
    check_driver,
    check_gpu_code,
    check_torch,
    check_consumers,
    check_tensorrt,
    check_plugin,
)
WHEEL_RULES: tuple[Rule, ...] = (check_libraries, check_shared_folders, check_numpy)
"""The rules that look at the wheels chosen for a build: choosing them takes time."""
REQUIREMENT_RULES: tuple[Rule, ...] = (check_requirements, check_options)
RULES = (*BUILD_RULES, *WHEEL_RULES, *REQUIREMENT_RULES)


def is_usable(build: Build, here: Situation) -> bool:
    """Tell whether no rule rejects `build` here; its wheels are chosen last."""
    subject = without_wheels(build, here)
    if any(True for rule in (*BUILD_RULES, *REQUIREMENT_RULES) for _ in rule(subject, here)):
        return False
    return not reasons_against(make_candidate(build, here, first_failure_only=True), here)


def reasons_for(subject: Candidate, here: Situation) -> tuple[Reason, ...]:
    """Return why a candidate works that no rule rejects."""
    build = subject.build
    reasons = [reason("why-driver", cuda=build.cuda, driver_cuda=here.driver_cuda or "")]
    for capability in capabilities(here):
        how = runs_on(build.sass, build.ptx, capability)
        reasons.append(reason(f"why-{how}", gpu=capability))
    for release in (component.release for component in subject.components.chosen):
        by = tuple(demand.by for demand in here.demanded(release.name))
        if by:
            wheel = f"{release.name} {release.version}"
            reasons.append(reason("why-pinned", distribution=wheel, by=by))
    sharing = tuple(
        row.by for row in here.consumers if row.name != TORCH and row.cuda == major(build.cuda)
    )
    if sharing:
        reasons.append(reason("why-consumers", by=sharing, cuda=major(build.cuda)))
    return (*reasons, *why_msvc_runtime(build, subject.runtime, here))
