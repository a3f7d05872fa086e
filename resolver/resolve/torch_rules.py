"""Why an onnxruntime-gpu and a torch cannot share a process, or a torch cannot run here."""

from __future__ import annotations

from collections.abc import Iterator

from ..matrix.model import Build
from ..matrix.torch import TorchBuild
from ..plan.reasons import Reason, reason
from ..versions import at_least, major, numbers
from .gpu_code import describe_code, runs_on
from .release_checks import capabilities, glibc_suffices, oldest_that_serves
from .situation import Situation, cuda_major_runs


def against_torch(build: Build, here: Situation) -> Iterator[Reason]:
    """Yield why the torch of `here` and `build` cannot be loaded into one process.

    What torch pins of NVIDIA's wheels is not looked at here: it is a requirement like any other.
    """
    torch = here.torch
    if torch is None or torch.cuda is None:
        return
    if major(torch.cuda) != major(build.cuda):
        yield reason("torch-other-cuda", torch=torch.name, cuda=torch.cuda, needs=major(build.cuda))
    elif torch.cudnn is not None and major(torch.cudnn) != build.cudnn:
        yield reason("torch-other-cudnn", torch=torch.name, cudnn=torch.cudnn, needs=build.cudnn)
    elif torch.build is not None and torch.build.libraries == "inside":
        yield from _too_old_inside(build, torch.build, here)


def _too_old_inside(build: Build, torch: TorchBuild, here: Situation) -> Iterator[Reason]:
    """Yield the libraries in `torch/lib` that lack what the provider takes from them."""
    carried = {**torch.toolkit}
    if torch.cudnn is not None:
        carried[f"nvidia-cudnn-cu{major(torch.cuda or '')}"] = torch.cudnn
    for need in build.needs:
        found = carried.get(need.distribution or "")
        floor = oldest_that_serves(need, here)
        if found is not None and floor is not None and not at_least(found, floor):
            yield reason(
                "torch-library-old",
                torch=torch.name,
                library=need.library,
                found=found,
                needs=floor,
            )


def against_machine(build: TorchBuild, here: Situation) -> Reason | None:
    """Return why `build` of torch cannot run on the machine and the Python of `here`, or None."""
    if here.abi not in build.pythons:
        return reason("no-wheel-python", python=here.abi)
    if not glibc_suffices(here, build.glibc):
        return reason("glibc-too-old", glibc=build.glibc or "", libc=here.facts.platform.libc or "")
    cuda = build.cuda or ""
    if here.driver_cuda is not None and not cuda_major_runs(here.driver_cuda, cuda):
        needed = major(cuda)
        return reason(
            "driver-too-old",
            cuda=needed,
            floor=here.floor(needed) or "",
            driver_cuda=here.driver_cuda,
        )
    return without_code(build, here)


def without_code(build: TorchBuild, here: Situation) -> Reason | None:
    """Return which GPU finds no code in `build` that it can run, or None.

    PTX does not count: torch for a GPU that its cuBLAS and cuDNN have no machine code for fails.
    """
    for capability in capabilities(here):
        if runs_on(build.sass, (), capability) == "no":
            code = describe_code(build.sass, build.ptx)
            return reason("no-gpu-code", gpu=capability, carried=code)
    return None


def _native(build: TorchBuild, here: Situation) -> bool:
    """Tell whether the driver is as new as the CUDA of `build`; one that is not known counts."""
    speaks, made = here.driver_cuda, build.cuda or ""
    return speaks is None or numbers(speaks)[:2] >= numbers(made)[:2]


def preference(build: TorchBuild, here: Situation) -> tuple[object, ...]:
    """Return the key that sorts builds of one release, the best first.

    The installed one; a CUDA that the driver speaks itself before one that it runs by minor-version
    compatibility; of the former the newest, of the latter the oldest; PyPI's, whose hashes are
    known, before that of PyTorch's own index.
    """
    there = here.torch is not None and build == here.torch.build
    native = _native(build, here)
    made = numbers(build.cuda or "")
    order = tuple(-number for number in made) if native else made
    return (not there, not native, order, not build.wheels)
