"""GPU code: whether a GPU can run what a library carries, and what is rejected because it cannot.

Sources: CUDA Programming Guide, "Compute Capabilities" (machine code runs on the same major
and the same or a newer minor; `a` targets on exactly theirs, `f` targets within their family), and
"CUDA Compatibility" (an old driver cannot compile PTX that is newer than itself).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..errors import cause
from ..matrix.model import Build, Code, Distribution
from ..matrix.torch import TorchBuild
from ..plan.reasons import Reason, reason
from ..versions import numbers
from .situation import Situation

Run = Literal["sass", "ptx", "no"]
MACHINE_CODE_ONLY = ("nvidia-cublas", "nvidia-cudnn")
"""PTX in these does not count: NVIDIA supports them on GPUs that they have machine code for. cuFFT
of CUDA 12.8 has PTX alone for 12.0: a driver as new as the toolkit compiles it at the first use."""


def runs_on(sass: Iterable[str], ptx: Iterable[str], compute_capability: str) -> Run:
    """Return how a GPU of `compute_capability` (`8.6`) runs code for these targets.

    `sass` and `ptx` hold targets such as `9.0`, `9.0a`, `12.0f`. `ptx` as the answer means that the
    driver has to compile it, and must be new enough for that.
    """
    gpu = numbers(compute_capability)
    if any(_covers(target, gpu, ptx=False) for target in sass):
        return "sass"
    if any(_covers(target, gpu, ptx=True) for target in ptx):
        return "ptx"
    return "no"


def _covers(target: str, gpu: tuple[int, ...], *, ptx: bool) -> bool:
    built = numbers(target)
    if target.endswith("a"):
        return gpu == built
    if ptx and not target.endswith("f"):
        return gpu >= built
    return gpu[:1] == built[:1] and gpu >= built


def capabilities(situation: Situation) -> tuple[str, ...]:
    """Return the distinct compute capabilities that must be served, lowest first."""
    known = {gpu.compute_capability for gpu in situation.gpus or () if gpu.compute_capability}
    return tuple(sorted(known, key=numbers))


def gpu_without_code(code: Code, name: str, situation: Situation, *, ptx: bool) -> str | None:
    """Return the first compute capability that `code` of the distribution `name` cannot serve.

    `ptx`: whether the driver compiles its PTX.
    """
    counted = code.ptx if ptx and not name.startswith(MACHINE_CODE_ONLY) else ()
    return next(
        (gpu for gpu in capabilities(situation) if runs_on(code.sass, counted, gpu) == "no"), None
    )


def code_of_file(version: str, distribution: Distribution, platform: str) -> list[Code]:
    """Return what may be the GPU code of a library of `distribution` that no wheel brought.

    `version` is that of the file, and may be short: 9 of 9.1.0.
    """
    have = numbers(version)
    return [
        code
        for code in distribution.code
        if code.platform == platform
        and numbers(code.first)[: len(have)] <= have
        and have[: len(numbers(code.last))] <= numbers(code.last)[: len(have)]
    ]


def no_gpu_code(capability: str, build: Build | TorchBuild) -> Reason:
    """Return the reason that `build` has no code for a GPU of this compute capability."""
    code = cause("gpu-code", sass=build.sass, ptx=build.ptx) if build.ptx else build.sass
    return reason("no-gpu-code", gpu=capability, carried=code)
