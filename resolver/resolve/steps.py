"""What may be changed so that a newer release works: a driver, a Python, a package, a wish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..facts.gpu_names import product_name
from ..facts.model import Driver, Facts, Gpu
from ..plan.reasons import Reason, RequirementLine, reason
from ..versions import major, numbers
from .gpu_code import capabilities
from .options import PlanOptions
from .release_checks import glibc_suffices, unsupported_gpu
from .situation import Situation, changed

_DATA_CENTER_CHIPS = frozenset({"8.0", "9.0", "10.0", "10.3"})
"""A100 and A30, H100 and H200, B200, B300: https://developer.nvidia.com/cuda-gpus."""


class Step(NamedTuple):
    """One thing that may be changed."""

    kind: str
    """`driver`, `package numpy`: of one kind one is enough."""
    change: Reason
    facts: Callable[[Facts], Facts] = lambda facts: facts
    options: Callable[[PlanOptions], PlanOptions] = lambda options: options
    packages: tuple[str, ...] = ()
    """The packages of which others are had, or none."""


def after(situation: Situation, steps: Iterable[Step]) -> Situation:
    """Return the situation after `steps`."""
    facts, options = situation.facts, situation.options
    for step in steps:
        facts, options = step.facts(facts), step.options(options)
    return changed(situation, facts=facts, options=options)


def steps_of_machine(situation: Situation) -> Iterator[Step]:
    """Yield what of the machine and the wishes may be changed; of one kind the smallest first."""
    yield from _other_drivers(situation)
    yield from _forward_compatibility(situation)
    served = capabilities(situation)
    if len(served) > 1:  # without a GPU nothing works
        yield from map(_ignoring, served)
    yield from _other_pythons(situation)
    yield from _other_platforms(situation)
    wished = situation.options
    if wished.onnxruntime:
        yield _with_options("--ort", reason("drop-wish", wish="--ort"), onnxruntime="")
    if wished.cuda is not None:
        yield _with_options("--cuda", reason("drop-wish", wish="--cuda"), cuda=None)
    if wished.provider != "cuda":
        dropped = reason("drop-wish", wish=f"--provider {wished.provider}")
        yield _with_options("--provider", dropped, provider="cuda")


def without_packages(names: Iterable[str]) -> Step:
    """Return the step of having none of these packages, or others that stand in nobody's way.

    With which command an index is asked for them depends on what is gained.
    """
    gone = frozenset(names)
    return Step(
        f"package {' '.join(sorted(gone))}",
        reason("other-version", by=tuple(sorted(gone)), command=""),
        facts=lambda facts: facts._replace(
            packages=tuple(package for package in facts.packages if package.name not in gone)
        ),
        packages=tuple(sorted(gone)),
    )


def without_line(line: RequirementLine) -> Step:
    """Return the step of leaving out a line of the user's files."""
    return Step(
        f"line {line.text}",
        reason("other-requirement", file=line.file, requirement=line.text),
        options=lambda options: options._replace(
            requirements=tuple(each for each in options.requirements if each != line)
        ),
    )


def with_conflicts() -> Step:
    """Return the step of letting go what packages require."""
    change = reason("allow-conflicts", flags="--allow conflicts")
    return _with_options("conflicts", change, conflicts=True)


def with_other_torch() -> Step:
    """Return the step of letting torch move."""
    return _with_options("torch", reason("match-torch"), torch="match")


def _ignoring(gpu: str) -> Step:
    return Step(
        f"gpu {gpu}",
        reason("ignore-gpu", gpu=gpu),
        options=lambda before: before._replace(ignored_gpus=before.ignored_gpus | {gpu}),
    )


def _with_facts(kind: str, change: Reason, **facts: object) -> Step:
    return Step(kind, change, facts=lambda before: before._replace(**facts))  # type: ignore[arg-type]


def _with_options(kind: str, change: Reason, **options: object) -> Step:
    return Step(kind, change, options=lambda before: before._replace(**options))  # type: ignore[arg-type]


def _other_drivers(situation: Situation) -> Iterator[Step]:
    """Yield the drivers that newer CUDA majors need, and those that compile newer PTX.

    And the last branch that runs a GPU, where that of now came after it.
    """
    facts = situation.facts
    if facts.driver is None:
        # The GPU is not known: the gain is what the driver alone would allow.
        newest = max(situation.matrix.floors, key=lambda row: numbers(row.cuda))
        driver = Driver(cuda=f"{newest.cuda}.0")
        yield _with_facts(
            "driver", reason("driver-visible"), driver=driver, gpus=facts.gpus or None
        )
        return
    if facts.gpus == ():
        yield _with_facts("gpus", reason("gpu-visible"), gpus=None)
    if situation.driver_cuda is None:
        return
    newer = [
        row
        for row in (*situation.matrix.floors, *situation.matrix.toolkit_drivers)
        if numbers(row.cuda) > numbers(situation.driver_cuda)
    ]
    for row in sorted(newer, key=lambda row: numbers(row.cuda)):
        release = situation.driver_release(row)
        if release is not None:
            cuda = row.cuda if "." in row.cuda else f"{row.cuda}.0"
            unnamed = {name: text for name, text in facts.sources.items() if name != "gpus"}
            driver = Driver(version=release, cuda=cuda)  # it has not named the GPUs
            newer_driver = reason("newer-driver", floor=release, cuda=major(row.cuda))
            yield _with_facts("driver", newer_driver, driver=driver, sources=unnamed)
    refusal = unsupported_gpu(situation)
    if refusal is not None and refusal.code == "gpu-dropped":
        last = str(dict(refusal.values)["last"])
        older = Driver(version=last.removeprefix("R"))
        yield _with_facts("driver", reason("older-driver", last=last), driver=older)


def _forward_compatibility(situation: Situation) -> Iterator[Step]:
    """Yield NVIDIA's packages with a newer driver library that its table allows here.

    Every GPU must be one for data centres, by its name; without a name by a compute capability
    that no other GPU has.
    """
    facts = situation.facts
    platform, driver = facts.platform, facts.driver
    if platform.system != "linux" or platform.wsl or platform.jetson is not None:
        return
    if driver is None or not driver.version:
        return
    if not situation.gpus or not all(
        _is_for_data_centers(gpu, situation) for gpu in situation.gpus
    ):
        return
    branch = numbers(driver.version)[0]
    for row in situation.matrix.forward:
        if branch in row.branches:
            why = reason("forward-compatibility", package=row.package, cuda=row.cuda)
            yield _with_facts("driver", why, driver=driver._replace(cuda=row.cuda))


def _is_for_data_centers(gpu: Gpu, situation: Situation) -> bool:
    if gpu.name and product_name(gpu.name):
        return product_name(gpu.name) in set(map(product_name, situation.matrix.data_center))
    return gpu.compute_capability in _DATA_CENTER_CHIPS


def _other_platforms(situation: Situation) -> Iterator[Step]:
    """Yield an x86-64 machine where this one has no build, and the newer glibcs of its builds."""
    facts = situation.facts
    builds = [build for build in situation.matrix.builds if build.platform == situation.platform]
    if not builds:
        platform = facts.platform._replace(machine="x86_64")
        yield _with_facts("platform", reason("other-machine"), platform=platform)
    floors = {build.glibc for build in builds if not glibc_suffices(situation, build.glibc)}
    for floor in sorted(filter(None, floors), key=numbers):
        newer = facts.platform._replace(libc=f"glibc {floor}")
        yield _with_facts("platform", reason("newer-glibc", glibc=floor), platform=newer)


def _other_pythons(situation: Situation) -> Iterator[Step]:
    """Yield the other Pythons that the matrix has wheels for, the nearest first."""
    facts = situation.facts
    present = numbers(facts.python.version)
    name = "Python" if facts.python.implementation == "cpython" else "CPython"
    minors = {
        int(wheel.python.removeprefix("cp3").rstrip("t"))
        for build in situation.matrix.builds
        for wheel in build.wheels
        if not wheel.python.endswith("m")  # nothing can be installed into so old a Python
    }
    cpython = facts.python._replace(implementation="cpython", free_threaded=False)
    for minor in sorted(minors, key=lambda minor: (abs(minor - present[1]), minor)):
        if minor != present[1] or facts.python != cpython:
            python = cpython._replace(version=f"3.{minor}.0")
            change = reason("other-python", python=f"{name} 3.{minor}")
            yield _with_facts("python", change, python=python)
