"""The findings of the machine alone: its driver, its GPUs, and what a program sees of them.

In: the situation; out: one finding for each root cause, whatever follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Cause, cause
from ..facts.driver import COMPAT, EXPLAINED_ERRORS, MIG, MIG_ON
from ..facts.model import EXPECTED_PLATFORM
from ..plan.reasons import Finding, finding
from .situation import Situation

WITHOUT_A_DRIVER = frozenset({"driver-unreadable", "driver-unknown", "no-driver", "no-gpu"})
"""Reasons of the rules that follow from an error of the machine, which is a finding of its own."""


def machine_findings(situation: Situation) -> Iterator[Finding]:
    """Yield what is wrong with the driver and the GPUs, and what is worth knowing of them."""
    yield from _platform_findings(situation)
    yield from _driver_findings(situation)
    yield from _gpu_findings(situation)
    yield from _hidden_gpu_findings(situation)


def _platform_findings(situation: Situation) -> Iterator[Finding]:
    platform, driver = situation.facts.platform, situation.facts.driver
    expected = situation.facts.sources.get(EXPECTED_PLATFORM)
    if expected and driver and not platform.is_of(expected) and not platform.wsl:
        wanted = "linux-x86_64" if expected == "linux" else expected
        yield finding("platform-unexpected", "warning", expected=wanted, platform=platform.name)


def _driver_findings(situation: Situation) -> Iterator[Finding]:
    driver, sources = situation.facts.driver, situation.facts.sources
    library, sliced = sources.get(COMPAT), sources.get(MIG)
    paths = situation.facts.environment.get("LD_LIBRARY_PATH")
    searched = [f"LD_LIBRARY_PATH={paths}"] if paths else []
    if driver is None:
        yield finding("no-driver", "error", source=sources.get("driver", ""))
    elif driver.error is not None:
        code = EXPLAINED_ERRORS.get(driver.error_code, "driver-unreadable")
        evidence: list[str] = []
        if code == "driver-forward-compatibility":
            evidence = [*([library] if library else []), *searched]
        if code == "driver-no-device" and sliced:
            code, evidence = "mig-without-instance", [sliced]
        file, how = _driver_library(situation)
        error = driver.error_evidence
        yield finding(code, "error", *evidence, error=error, library=file, how=how)
    elif situation.driver_cuda is None:
        yield finding("driver-unknown", "error")
    elif library and driver.cuda:
        values = {"cuda": driver.cuda, "version": driver.version or "?"}
        yield finding("forward-compatibility", "info", library, *searched, **values)


def _driver_library(situation: Situation) -> tuple[str, Cause]:
    """Return the driver's CUDA library, and what brings it where it is not."""
    if situation.facts.platform.system == "windows":
        return "nvcuda.dll", cause("driver-library-windows")
    if situation.facts.platform.container:
        return "libcuda.so.1", cause("driver-library-container")
    return "libcuda.so.1", cause("driver-library-host")


def _gpu_findings(situation: Situation) -> Iterator[Finding]:
    facts = situation.facts
    if facts.driver is not None and facts.gpus == ():
        yield finding("no-gpu", "error")
    if facts.gpus is None:
        yield finding("gpus-unknown", "warning")
    for gpu in facts.gpus or ():
        if gpu.compute_capability is None:
            yield finding("gpu-unknown", "warning", gpu=gpu.name or "?")
        elif gpu.compute_capability in situation.options.ignored_gpus:
            yield finding(
                "gpu-ignored", "info", gpu=gpu.name or "?", capability=gpu.compute_capability
            )
    sliced = facts.sources.get(MIG)
    if sliced and facts.driver is not None and facts.driver.error is None:
        yield finding("mig", "info", sliced, gpus=sliced.removeprefix(MIG_ON))


def _hidden_gpu_findings(situation: Situation) -> Iterator[Finding]:
    value, gpus = situation.facts.environment.get("CUDA_VISIBLE_DEVICES"), situation.facts.gpus
    if value is None:
        return
    evidence, count = f"CUDA_VISIBLE_DEVICES={value}", len(gpus) if gpus else None
    left = visible_gpus(value, count)
    if left == 0:
        yield finding("gpus-hidden", "warning", evidence)
    elif left is not None and count is not None and left < count:
        yield finding("gpus-hidden-some", "info", evidence, left=str(left), count=str(count))


def visible_gpus(value: str, count: int | None) -> int | None:
    """Return how many of `count` GPUs CUDA_VISIBLE_DEVICES leaves; None where that is not known.

    CUDA takes the numbers in their order and stops at the first that names no GPU; of a name
    (`GPU-…`, `MIG-…`) these facts do not know which one it is. Source: CUDA C++ Programming Guide,
    "CUDA Environment Variables".
    """
    left = 0
    for entry in value.split(","):
        word = entry.strip()
        if word.startswith(("GPU-", "MIG-")):
            return None
        if not word.isdecimal():
            break
        if count is None:
            return None
        if int(word) >= count:
            break
        left += 1
    return left
