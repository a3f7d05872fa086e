"""Situations with one thing changed that may allow a newer release: a driver, a Python, a wish."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.gpu_names import product_name
from ..facts.model import Driver, Facts, Gpu
from ..plan.reasons import Reason, reason
from ..versions import numbers
from .gpu_code import capabilities
from .options import PlanOptions
from .release_checks import glibc_suffices, unsupported_gpu
from .situation import Situation, situation

_DATA_CENTER_CHIPS = frozenset({"8.0", "9.0", "10.0", "10.3"})
"""A100 and A30, H100 and H200, B200, B300: https://developer.nvidia.com/cuda-gpus."""


def changed_situations(here: Situation) -> Iterator[tuple[Reason, Situation]]:
    """Yield what may be changed, and the situation then; of one kind the smallest change first."""
    for change, facts, options in _changes(here):
        yield change, situation(facts, options, here.matrix)


def _changes(here: Situation) -> Iterator[tuple[Reason, Facts, PlanOptions]]:
    facts, options = here.facts, here.options
    yield from _other_drivers(here)
    yield from _forward_compatibility(here)
    for capability in capabilities(here):
        ignoring = options._replace(ignored_gpus=options.ignored_gpus | {capability})
        yield reason("ignore-gpu", gpu=capability), facts, ignoring
    yield from _other_pythons(here)
    yield from _other_platforms(here)
    if options.onnxruntime:
        yield reason("drop-wish", wish="--ort"), facts, options._replace(onnxruntime="")
    if options.cuda is not None:
        yield reason("drop-wish", wish="--cuda"), facts, options._replace(cuda=None)
    if options.provider != "cuda":
        wish = f"--provider {options.provider}"
        yield reason("drop-wish", wish=wish), facts, options._replace(provider="cuda")


def _other_drivers(here: Situation) -> Iterator[tuple[Reason, Facts, PlanOptions]]:
    """Yield the drivers that newer CUDA majors need, and those that compile newer PTX.

    And the last branch that runs a GPU, where that of now came after it.
    """
    facts = here.facts
    if facts.driver is None:
        # The GPU is not known: the gain is what the driver alone would allow.
        newest = max(here.matrix.floors, key=lambda row: numbers(row.cuda))
        driver = Driver(cuda=f"{newest.cuda}.0")
        changed = facts._replace(driver=driver, gpus=facts.gpus or None)
        yield reason("driver-visible"), changed, here.options
        return
    if facts.gpus == ():
        yield reason("gpu-visible"), facts._replace(gpus=None), here.options
    if here.driver_cuda is None:
        return
    newer = [
        row
        for row in (*here.matrix.floors, *here.matrix.toolkit_drivers)
        if numbers(row.cuda) > numbers(here.driver_cuda)
    ]
    for row in sorted(newer, key=lambda row: numbers(row.cuda)):
        release = here.driver_release(row)
        if release is not None:
            cuda = row.cuda if "." in row.cuda else f"{row.cuda}.0"
            unnamed = {name: text for name, text in facts.sources.items() if name != "gpus"}
            driver = Driver(version=release, cuda=cuda)  # it has not named the GPUs
            changed = facts._replace(driver=driver, sources=unnamed)
            yield reason("newer-driver", floor=release), changed, here.options
    refusal = unsupported_gpu(here)
    if refusal is not None and refusal.code == "gpu-dropped":
        last = str(dict(refusal.values)["last"])
        older = facts._replace(driver=Driver(version=last.removeprefix("R")))
        yield reason("older-driver", last=last), older, here.options


def _forward_compatibility(here: Situation) -> Iterator[tuple[Reason, Facts, PlanOptions]]:
    """Yield NVIDIA's packages with a newer driver library that its table allows here.

    Every GPU must be one for data centres, by its name; without a name by a compute capability
    that no other GPU has.
    """
    facts = here.facts
    platform, driver = facts.platform, facts.driver
    if platform.system != "linux" or platform.wsl or platform.jetson is not None:
        return
    if driver is None or not driver.version:
        return
    if not here.gpus or not all(_is_for_data_centers(gpu, here) for gpu in here.gpus):
        return
    branch = numbers(driver.version)[0]
    for row in here.matrix.forward:
        if branch in row.branches:
            changed = facts._replace(driver=driver._replace(cuda=row.cuda))
            why = reason("forward-compatibility", package=row.package, cuda=row.cuda)
            yield why, changed, here.options


def _is_for_data_centers(gpu: Gpu, here: Situation) -> bool:
    if gpu.name and product_name(gpu.name):
        return product_name(gpu.name) in set(map(product_name, here.matrix.data_center))
    return gpu.compute_capability in _DATA_CENTER_CHIPS


def _other_platforms(here: Situation) -> Iterator[tuple[Reason, Facts, PlanOptions]]:
    """Yield an x86-64 machine where this one has no build, and the newer glibcs of its builds."""
    facts = here.facts
    builds = [build for build in here.matrix.builds if build.platform == here.platform]
    if not builds:
        platform = facts.platform._replace(machine="x86_64")
        yield reason("other-machine"), facts._replace(platform=platform), here.options
    floors = {build.glibc for build in builds if not glibc_suffices(here, build.glibc)}
    for floor in sorted(filter(None, floors), key=numbers):
        newer = facts._replace(platform=facts.platform._replace(libc=f"glibc {floor}"))
        yield reason("newer-glibc", glibc=floor), newer, here.options


def _other_pythons(here: Situation) -> Iterator[tuple[Reason, Facts, PlanOptions]]:
    """Yield the other Pythons that the matrix has wheels for, the nearest first."""
    facts = here.facts
    present = numbers(facts.python.version)
    name = "Python" if facts.python.implementation == "cpython" else "CPython"
    minors = {
        int(wheel.python.removeprefix("cp3").rstrip("t"))
        for build in here.matrix.builds
        for wheel in build.wheels
        if not wheel.python.endswith("m")  # nothing can be installed into so old a Python
    }
    cpython = facts.python._replace(implementation="cpython", free_threaded=False)
    for minor in sorted(minors, key=lambda minor: (abs(minor - present[1]), minor)):
        if minor != present[1] or facts.python != cpython:
            python = cpython._replace(version=f"3.{minor}.0")
            change = reason("other-python", python=f"{name} 3.{minor}")
            yield change, facts._replace(python=python), here.options
