"""Why a release of onnxruntime-gpu and a build of torch cannot share a process; or torch a machine.

Core.
"""

from __future__ import annotations

from collections.abc import Iterator

from .gpu_code import runs
from .matrix import Build
from .plan import Reason, reason
from .releases import capabilities, code_of, glibc_suffices, oldest_that_serves
from .situation import Situation, cuda_major_runs
from .torch_builds import TorchBuild
from .versions import at_least, major, numbers


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
    if build.cuda is None:
        return reason("torch-cpu")
    if here.driver_cuda is not None and not cuda_major_runs(here.driver_cuda, build.cuda):
        needed = major(build.cuda)
        return reason(
            "driver-too-old",
            cuda=needed,
            floor=here.floor(needed) or "",
            driver_cuda=here.driver_cuda,
        )
    return without_code(build, here)


def without_code(build: TorchBuild, here: Situation) -> Reason | None:
    """Return which GPU finds no code in `build` that it can run, or None."""
    for capability in capabilities(here):
        how = runs(build.sass, _counted(build, capability, here), capability)
        if how == "no":
            carried = ", ".join(build.sass)
            carried += f"; as PTX {', '.join(build.ptx)}" if build.ptx else ""
            return reason("no-gpu-code", gpu=capability, carried=carried)
        if how == "ptx" and not _native(build, here):
            return reason(
                "ptx-needs-driver",
                gpu=capability,
                cuda=build.cuda or "",
                driver_cuda=here.driver_cuda or "",
            )
    return None


def _counted(build: TorchBuild, capability: str, here: Situation) -> tuple[str, ...]:
    """Return the PTX of `build` that helps a GPU: its cuBLAS needs machine code for it as well."""
    for name, version in build.toolkit.items():
        distribution = here.matrix.distributions.get(name)
        if name.startswith("nvidia-cublas") and distribution is not None:
            for row in distribution.releases:
                if (row.version, row.platform) == (version, here.platform):
                    code = code_of(distribution.code, row)
                    reached = code is not None and runs(code.sass, (), capability) == "sass"
                    return build.ptx if reached else ()
    return ()


def _native(build: TorchBuild, here: Situation) -> bool:
    """Tell whether the driver is as new as the CUDA of `build`; one that is not known counts."""
    speaks, made = here.driver_cuda, build.cuda or ""
    return speaks is None or numbers(speaks)[:2] >= numbers(made)[:2]


def preference(build: TorchBuild, here: Situation) -> tuple[object, ...]:
    """Return the key that sorts builds of one release, the best first.

    The installed one; machine code for every GPU before PTX; a CUDA that the driver speaks itself
    before one that it runs by minor-version compatibility; of the former the newest, of the latter
    the oldest; PyPI's, whose hashes are known, before that of PyTorch's own index.
    """
    there = here.torch is not None and build == here.torch.build
    compiled = any(runs(build.sass, (), each) == "no" for each in capabilities(here))
    native = _native(build, here)
    made = numbers(build.cuda or "")
    order = tuple(-number for number in made) if native else made
    return (not there, compiled, not native, order, not build.wheels)
