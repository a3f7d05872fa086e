"""What is wrong with the installed torch, or between it and onnxruntime-gpu."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..companions.contents import LIBRARIES
from ..facts.model import GPU_BUILD
from ..matrix.model import IN_TORCH, Build
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..messages.sections import size
from ..plan.reasons import Finding, Wanting, finding
from ..plan.wheels import PYPI, Wheel, short_name
from ..versions import at_least, major, newest_first
from .release_checks import too_old_driver
from .situation import Situation
from .torch_choice import TorchChoice, TorchSearch, nearest_runnable, refusing_release
from .torch_installed import InstalledTorch
from .torch_rules import without_code


def torch_findings(situation: Situation, search: TorchSearch | None) -> Iterator[Finding]:
    """Yield the findings of the torch of `situation`; `search` is the search for another torch."""
    torch, choice = situation.torch, search.choice if search else None
    able = situation.gpus != () and situation.driver_cuda is not None
    unfit = search is not None and choice is None and able
    if unfit:
        wish = f"--torch {situation.options.torch.removeprefix('==')}"
        yield finding("torch-wish-unfit", "error", wish=wish, instead=_other_torch(situation, None))
    if torch is None:
        return
    cannot = (
        ()
        if torch.cuda is None
        else tuple(_unusable_torch_findings(torch, torch.cuda, situation, choice))
    )
    if choice is None and (unfit or cannot):
        yield from _blocked_torch_findings(situation, search)
    if torch.without_cuda:
        yield finding("torch-without-cuda", "info", torch=torch.name)
    elif torch.cuda is not None:
        yield from cannot
        yield from _two_cuda_majors_findings(torch, torch.cuda, situation)
        yield from _import_order_findings(torch, torch.cuda, situation)
    else:
        yield finding("torch-unknown", "info", torch=torch.name)
    yield from _moved_cudnn_findings(torch, situation)
    if choice is not None and choice.install:
        yield from _bound_findings(torch, situation)


def _unusable_torch_findings(
    torch: InstalledTorch, cuda: str, situation: Situation, choice: TorchChoice | None
) -> Iterator[Finding]:
    """Say why `torch.cuda.is_available()` is false, or why its kernels do not run."""
    refusal = too_old_driver(cuda, situation)
    if refusal is None and torch.build is not None and torch.build.cuda:
        refusal = without_code(torch.build, situation)
    if refusal is not None:
        values = {"torch": torch.name, **dict(refusal.values)}
        if refusal.code == "driver-too-old":
            values["cuda"] = cuda
        yield finding(
            f"torch-{refusal.code}", "warning", **values, instead=_other_torch(situation, choice)
        )


def _other_torch(situation: Situation, choice: TorchChoice | None) -> str:
    """Return the torch that works: `torch 2.7.1`, `torch 2.7.1+cu128 (https://…/cu128)`."""
    if choice is not None:
        return _from_index(choice.torch.version, choice.torch.index_url)
    build = nearest_runnable(situation)
    if build is None:
        return "-"
    if build.wheels:
        return _from_index(build.version, PYPI)
    return _from_index(build.name, f"{situation.options.torch_index.rstrip('/')}/{build.local}")


def _from_index(version: str, index: str) -> str:
    """Return a torch and where it comes from, where that is not PyPI."""
    return f"{TORCH} {version}" + ("" if index == PYPI else f" ({index})")


def _blocked_torch_findings(situation: Situation, search: TorchSearch | None) -> Iterator[Finding]:
    """Name the packages that allow no torch that fits; `search` is None if none was searched."""
    if search is not None:
        refusals = (why for rejection in search.rejected for why in rejection.reasons)
        held = {
            Wanting(by, str(dict(why.values)["requires"]))
            for why in refusals
            if why.code == "demand-conflict"
            for by in why.by
        }
    else:
        build = nearest_runnable(situation)
        demands = refusing_release(build.version, situation) if build else ()
        held = {Wanting(demand.by, demand.of(TORCH)) for demand in demands}
    if held:
        yield finding("torch-held", "warning", by=tuple(sorted(held, key=str)))


def _two_cuda_majors_findings(
    torch: InstalledTorch, cuda: str, situation: Situation
) -> Iterator[Finding]:
    """Look for onnxruntime-gpu or NVIDIA wheels of another CUDA major than torch's."""
    other: dict[str, list[str]] = {}
    build = _installed_build(situation)
    if build is not None and situation.package(GPU_BUILD) is not None:
        other.setdefault(major(build.cuda), []).append(f"{GPU_BUILD} {build.version}")
    for package in situation.facts.packages:
        distribution = situation.matrix.distributions.get(package.name)
        if distribution is not None:
            other.setdefault(distribution.cuda, []).append(f"{package.name} {package.version}")
    other.pop(major(cuda), None)
    for number in sorted(other):
        yield finding(
            "two-cuda-majors",
            "warning",
            *other[number],
            torch=torch.name,
            cuda=cuda,
            other=number,
            what=tuple(other[number]),
        )


def _installed_build(situation: Situation) -> Build | None:
    """Return the build in the folder `onnxruntime`; for an unknown release the one before it."""
    folder = situation.facts.onnxruntime
    package = situation.package(GPU_BUILD)
    release = (folder.version if folder else None) or (package.version if package else None)
    if release is None:
        return None
    older = [
        build
        for build in situation.matrix.builds
        if build.platform == situation.platform and at_least(release, build.version)
    ]
    return max(older, key=lambda build: newest_first(build.version), default=None)


def _import_order_findings(
    torch: InstalledTorch, cuda: str, situation: Situation
) -> Iterator[Finding]:
    """Recognise "it works only if I import torch first": only torch loads the libraries."""
    build = _installed_build(situation)
    if (
        build is None
        or situation.package(GPU_BUILD) is None
        or situation.package(LIBRARIES) is not None
        or major(build.cuda) != major(cuda)
        or (torch.cudnn is not None and major(torch.cudnn) != build.cudnn)
    ):
        return
    system = {library.name.lower() for library in situation.facts.libraries}
    lacking = [
        need.library
        for need in build.needs
        if need.distribution
        and need.library.lower() not in system
        and _loads(torch, need.distribution, situation)
    ]
    if lacking:
        yield finding("torch-first", "info", torch=torch.name, libraries=tuple(lacking))


def _loads(torch: InstalledTorch, distribution: str, situation: Situation) -> bool:
    """Return whether importing torch loads a library: from its own folder, or NVIDIA's wheels."""
    if torch.build is not None and torch.build.libraries == "inside":
        return True
    by = {demand.distribution for demand in situation.demanded(distribution)}
    return TORCH in by and situation.package(distribution) is not None


def in_torch_findings(situation: Situation, selection: Iterable[Wheel]) -> Iterator[Finding]:
    """Say what torch brings of NVIDIA's libraries, and what follows from that."""
    wheels = [wheel for wheel in selection if wheel.index_url == IN_TORCH]
    if wheels and situation.torch is not None:
        yield finding(
            "libraries-in-torch",
            "info",
            *(f"{wheel.name} {wheel.version}" for wheel in wheels),
            names=tuple(short_name(wheel.name) for wheel in wheels),
            torch=situation.torch.name,
            size=size(sum(wheel.size for wheel in wheels)),
        )


def _moved_cudnn_findings(torch: InstalledTorch, situation: Situation) -> Iterator[Finding]:
    if torch.cuda is None:
        return
    name = f"nvidia-cudnn-cu{major(torch.cuda)}"
    installed = situation.package(name)
    pins = [
        spec.version
        for demand in situation.demanded(name)
        if demand.distribution == TORCH
        for spec in demand.specifier
        if spec.operator == "=="
    ]
    if installed is None or not pins or installed.version == pins[0]:
        return
    code = f"torch-cudnn-{'newer' if at_least(installed.version, pins[0]) else 'older'}"
    version = f"{name} {installed.version}"
    yield finding(code, "warning", torch=torch.name, installed=version, wanted=pins[0])


def _bound_findings(torch: InstalledTorch, situation: Situation) -> Iterator[Finding]:
    """Name the packages that were compiled against exactly this torch."""
    bound = [
        demand.by
        for demand in situation.demanded(TORCH)
        if demand.distribution not in DOMAIN_LIBRARIES
        and any(spec.operator == "==" for spec in demand.specifier)
    ]
    if bound:
        yield finding("torch-bound", "warning", torch=torch.name, by=tuple(sorted(bound, key=str)))
