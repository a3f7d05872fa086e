"""What is wrong with the installed torch, or between it and onnxruntime-gpu."""

from __future__ import annotations

from collections.abc import Iterator

from ..companions.contents import LIBRARIES
from ..facts.model import GPU_BUILD
from ..matrix.model import Build, LibraryNeed
from ..matrix.torch import COMPANIONS, TORCH
from ..plan.reasons import Finding, finding
from ..versions import at_least, major, newest_first
from .situation import Situation, cuda_major_runs
from .torch_choice import TorchChoice, TorchSearch, torches_covering, with_release
from .torch_installed import InstalledTorch
from .torch_rules import without_code


def torch_findings(here: Situation, found: TorchSearch | None) -> Iterator[Finding]:
    """Yield what was found of the torch of `here`; `found` came of looking for another."""
    torch, choice = here.torch, found.choice if found else None
    able = here.gpus != () and here.driver_cuda is not None
    unfit = found is not None and choice is None and able
    if unfit:
        wish = f"--torch {here.options.torch.removeprefix('==')}"
        yield finding("torch-wish-unfit", "error", wish=wish, instead=_instead(here, None))
    if torch is None:
        return
    cannot = () if torch.cuda is None else tuple(_cannot_run(torch, torch.cuda, here, choice))
    if choice is None and (unfit or cannot):
        yield from _held(here, found)
    if torch.without_cuda:
        yield finding("torch-without-cuda", "info", torch=torch.name)
    elif torch.cuda is not None:
        yield from cannot
        yield from _two_majors(torch, torch.cuda, here)
        yield from _first(torch, torch.cuda, here)
    else:
        yield finding("torch-unknown", "info", torch=torch.name)
    yield from _moved_cudnn(torch, here)
    if choice is not None and choice.install:
        yield from _bound(torch, here)


def _cannot_run(
    torch: InstalledTorch, cuda: str, here: Situation, choice: TorchChoice | None
) -> Iterator[Finding]:
    """Say why `torch.cuda.is_available()` is false, or its kernels do not run, and what would."""
    instead = _instead(here, choice)
    if here.driver_cuda is not None and not cuda_major_runs(here.driver_cuda, cuda):
        yield finding(
            "torch-driver-too-old",
            "warning",
            torch=torch.name,
            cuda=cuda,
            driver_cuda=here.driver_cuda,
            floor=here.floor(major(cuda)) or "",
            instead=instead,
        )
        return
    refusal = without_code(torch.build, here) if torch.build and torch.build.cuda else None
    if refusal is not None:
        values = dict(refusal.values)
        yield finding(
            "torch-no-gpu-code",
            "warning",
            torch=torch.name,
            gpu=values["gpu"],
            carried=values["carried"],
            instead=instead,
        )


def _instead(here: Situation, choice: TorchChoice | None) -> str:
    """Return the torch that runs here, and where it is: `torch 2.7.1+cu128, https://…/cu128`."""
    if choice is not None:
        wheel = next(row for row in choice.wheels if row.name == TORCH)
        return f"{TORCH} {wheel.version}, {wheel.index_url}"
    build = torches_covering(here)
    if build is None:
        return "-"
    if build.wheels:
        return f"{TORCH} {build.version}, pypi"
    return f"{TORCH} {build.name}, {here.options.torch_index.rstrip('/')}/{build.local}"


def _held(here: Situation, found: TorchSearch | None) -> Iterator[Finding]:
    """Name what stays and allows no torch that fits; `found` is None where none was looked for."""
    if found is not None:
        refusals = (why for row in found.rejected for why in row.reasons)
        conflicts = (dict(why.values) for why in refusals if why.code == "demand-conflict")
        held = {f"{row['by']} ({row['requires']})" for row in conflicts}
    else:
        build = torches_covering(here)
        demands = with_release(build.version, here) if build else ()
        held = {f"{demand.by} ({TORCH}{demand.specifier})" for demand in demands}
    if held:
        yield finding("torch-held", "warning", by=", ".join(sorted(held)))


def _two_majors(torch: InstalledTorch, cuda: str, here: Situation) -> Iterator[Finding]:
    """Look for an onnxruntime-gpu or NVIDIA wheels of another CUDA major than torch's."""
    other: dict[str, list[str]] = {}
    build = _installed_build(here)
    if build is not None and here.facts.package(GPU_BUILD) is not None:
        other.setdefault(major(build.cuda), []).append(f"{GPU_BUILD} {build.version}")
    for package in here.facts.packages:
        distribution = here.matrix.distributions.get(package.name)
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
            what=", ".join(other[number]),
        )


def _installed_build(here: Situation) -> Build | None:
    """Return the build in the shared folder; of a release that is not known the one before it."""
    there = here.facts.onnxruntime
    package = here.facts.package(GPU_BUILD)
    release = (there.version if there else None) or (package.version if package else None)
    if release is None:
        return None
    older = [
        build
        for build in here.matrix.builds
        if build.platform == here.platform and at_least(release, build.version)
    ]
    return max(older, key=lambda build: newest_first(build.version), default=None)


def _first(torch: InstalledTorch, cuda: str, here: Situation) -> Iterator[Finding]:
    """Recognise "it works only if I import torch first".

    Nothing loads the libraries for onnxruntime, and torch loads ones that serve it.
    """
    build = _installed_build(here)
    if (
        build is None
        or here.facts.package(GPU_BUILD) is None
        or here.facts.package(LIBRARIES) is not None
        or major(build.cuda) != major(cuda)
        or (torch.cudnn is not None and major(torch.cudnn) != build.cudnn)
    ):
        return
    found = {library.name.lower() for library in here.facts.libraries}
    lacking = [
        need.library
        for need in build.needs
        if need.distribution and need.library.lower() not in found and _brings(torch, need, here)
    ]
    if lacking:
        yield finding("torch-first", "info", torch=torch.name, libraries=", ".join(lacking))


def _brings(torch: InstalledTorch, need: LibraryNeed, here: Situation) -> bool:
    """Tell whether importing torch loads `need`: from its own folder, or NVIDIA's wheels."""
    if torch.build is not None and torch.build.libraries == "inside":
        return True
    by = {demand.by for demand in here.demanded(need.distribution or "")}
    return torch.name in by and here.facts.package(need.distribution or "") is not None


def _moved_cudnn(torch: InstalledTorch, here: Situation) -> Iterator[Finding]:
    """Compare the installed cuDNN with the one that torch requires."""
    if torch.cuda is None:
        return
    name = f"nvidia-cudnn-cu{major(torch.cuda)}"
    installed = here.facts.package(name)
    pins = [
        spec.version
        for demand in here.demanded(name)
        if demand.by == torch.name
        for spec in demand.specifier
        if spec.operator == "=="
    ]
    if installed is None or not pins or installed.version == pins[0]:
        return
    newer = at_least(installed.version, pins[0])
    yield finding(
        "torch-cudnn-newer" if newer else "torch-cudnn-older",
        "warning",
        torch=torch.name,
        installed=f"{name} {installed.version}",
        wanted=pins[0],
    )


def _bound(torch: InstalledTorch, here: Situation) -> Iterator[Finding]:
    """Name what requires this torch exactly: it was compiled against it."""
    bound = [
        demand.by
        for demand in here.demanded(TORCH)
        if demand.by.partition(" ")[0] not in COMPANIONS
        and any(spec.operator == "==" for spec in demand.specifier)
    ]
    if bound:
        yield finding("torch-bound", "warning", torch=torch.name, by=", ".join(sorted(bound)))
