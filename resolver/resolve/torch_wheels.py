"""The wheels of a torch: its own, torchvision and torchaudio."""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.model import Package
from ..matrix.torch import TORCH, DomainLibrary, PypiWheel, TorchBuild
from ..plan.wheels import Wheel, on_pypi
from ..versions import allows, newest_first
from .situation import Situation


def matching_domain_library(
    name: str, build: TorchBuild, situation: Situation
) -> DomainLibrary | None:
    """Return the release of torchvision or torchaudio (`name`) that was made for `build`.

    The one that requires exactly this torch; else the newest that allows it and was made with a
    torch for the same CUDA: PyTorch's index has it for no other.
    """
    libraries = [
        companion
        for companion in situation.matrix.torch.companions
        if companion.name == name
        and companion.platform == situation.platform
        and allows(companion.torch, build.version)
        and _fitting(companion.wheels, situation)
    ]
    libraries.sort(key=lambda library: newest_first(library.version), reverse=True)
    exact = (
        library for library in libraries if any(spec.operator == "==" for spec in library.torch)
    )
    made_for = (library for library in libraries if build.local in _labels(library, situation))
    return next(exact, None) or next(made_for, None)


def _labels(library: DomainLibrary, situation: Situation) -> set[str]:
    """Return the labels (`cu128`) of the torch release that `library` was made with.

    torchvision names that release as the oldest it allows, torchaudio has the same number.
    """
    release = next((spec.version for spec in library.torch), library.version)
    minor = release.rpartition(".")[0]
    builds = situation.matrix.torch.of(situation.platform)
    return {build.local for build in builds if build.version.rpartition(".")[0] == minor}


def _fitting(wheels: Sequence[PypiWheel], situation: Situation) -> PypiWheel | None:
    """Return the wheel for the Python of `situation`, or for every Python."""
    return next((wheel for wheel in wheels if wheel.python in {situation.abi, "py3"}), None)


def wheel_of_torch(
    name: str, build: TorchBuild, release: str, wheels: Sequence[PypiWheel], situation: Situation
) -> Wheel:
    """Return the wheel of the distribution `name`: PyPI's, or that of the index for its CUDA."""
    wheel = _fitting(wheels, situation)
    if build.wheels and wheel is not None:
        return on_pypi(name, release, wheel)
    return _from_index(name, f"{release}+{build.local}", build.local, situation)


def _from_index(name: str, release: str, label: str, situation: Situation) -> Wheel:
    index = f"{situation.options.torch_index.rstrip('/')}/{label}"
    return Wheel(name=name, version=release, index_url=index, file="", size=0, sha256="")


def kept_wheel(package: Package, build: TorchBuild | None, situation: Situation) -> Wheel:
    """Return the wheel of what is installed and stays; `build` is None for one not known."""
    if "+" in package.version:
        label = package.version.partition("+")[2].partition(".")[0]  # cu121.with.pypi.cudnn
        return _from_index(package.name, package.version, label, situation)
    wheels: Sequence[PypiWheel] = build.wheels if build else ()
    if package.name != TORCH:
        key = package.name, package.version, situation.platform
        libraries = {
            (companion.name, companion.version, companion.platform): companion
            for companion in situation.matrix.torch.companions
        }
        wheels = libraries[key].wheels if key in libraries else ()
    return on_pypi(package.name, package.version, _fitting(wheels, situation))


def kept_torch(situation: Situation) -> tuple[Wheel, ...]:
    """Return the wheel of the installed torch if it is built for CUDA."""
    torch = situation.torch
    if torch is None or torch.cuda is None:
        return ()
    packages = (package for package in situation.facts.packages if package.name == TORCH)
    return tuple(kept_wheel(package, torch.build, situation) for package in packages)
