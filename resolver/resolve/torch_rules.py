"""Why an onnxruntime-gpu and a torch cannot share a process, or a torch cannot run here."""

from __future__ import annotations

from collections.abc import Iterator

from ..matrix.model import Build
from ..matrix.torch import TorchBuild
from ..plan.reasons import Reason, reason
from ..versions import at_least, major, numbers
from .gpu_code import capabilities, no_gpu_code, runs_on
from .release_checks import oldest_that_serves, too_old_driver, too_old_glibc
from .situation import Situation


def against_torch(build: Build, situation: Situation) -> Iterator[Reason]:
    """Yield why the torch of `situation` and `build` cannot be loaded into one process.

    The versions of NVIDIA's wheels that torch pins are requirements like any other.
    """
    torch = situation.torch
    if torch is None or torch.cuda is None:
        return
    if major(torch.cuda) != major(build.cuda):
        yield reason("torch-other-cuda", torch=torch.by, cuda=torch.cuda, needs=major(build.cuda))
    elif torch.cudnn is not None and major(torch.cudnn) != build.cudnn:
        yield reason("torch-other-cudnn", torch=torch.by, cudnn=torch.cudnn, needs=build.cudnn)
    elif torch.build is not None and torch.build.carried:
        yield from _too_old_inside(build, torch.build, situation)


def _too_old_inside(build: Build, torch: TorchBuild, situation: Situation) -> Iterator[Reason]:
    """Yield the libraries in `torch/lib` that lack symbols that the provider needs."""
    for need in build.needs:
        present = torch.carried.get(need.distribution or "")
        floor = oldest_that_serves(need, situation)
        if present is not None and floor is not None and not at_least(present, floor):
            yield reason(
                "torch-library-old",
                torch=torch.name,
                by=situation.torch.by if situation.torch else (),
                library=need.library,
                found=present,
                needs=floor,
            )


def against_machine(build: TorchBuild, situation: Situation) -> Reason | None:
    """Return why `build` of torch cannot run on this machine and Python, or None."""
    if situation.abi not in build.pythons:
        return reason("no-wheel-python", python=situation.abi)
    return (
        too_old_glibc(build.glibc, situation)
        or too_old_driver(build.cuda or "", situation)
        or without_code(build, situation)
    )


def without_code(build: TorchBuild, situation: Situation) -> Reason | None:
    """Return which GPU finds no code in `build` that it can run, or None.

    PTX does not count: torch for a GPU that its cuBLAS and cuDNN have no machine code for fails.
    """
    for capability in capabilities(situation):
        if runs_on(build.sass, (), capability) == "no":
            return no_gpu_code(capability, build)
    return None


def preference(build: TorchBuild, situation: Situation) -> tuple[object, ...]:
    """Return the key that sorts builds of one release, the best first.

    The installed one; a CUDA that the driver supports before one that it runs by minor-version
    compatibility; of the former the newest, of the latter the oldest.
    """
    installed = situation.torch is not None and build == situation.torch.build
    cuda = numbers(build.cuda or "")
    native = situation.driver_cuda is None or numbers(situation.driver_cuda) >= cuda
    order = tuple(-number for number in cuda) if native else cuda
    return (not installed, order)
