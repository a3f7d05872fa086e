"""The installed torch: its build and its CUDA.

torch and onnxruntime load CUDA's libraries into one process and share those of the same name: they
must have the same CUDA major and cuDNN major. NVIDIA's wheels that torch pins are requirements like
any other; the libraries in `torch/lib` must serve both.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..facts.model import Package
from ..matrix.torch import TORCH, TorchBuild, TorchTable
from ..plan.reasons import Named
from ..versions import requirement, version

_CUDA_LOCAL = re.compile(r"cu(\d{2})(\d)(?:\.with\.pypi\.cudnn)?")
_NO_CUDA = re.compile(r"cpu|rocm|xpu")
_SUFFIXED = re.compile(r"nvidia-[a-z-]+-cu(\d{2})")


class InstalledTorch(NamedTuple):
    """The torch that is installed, or that a plan would install."""

    version: str
    """As it is installed: `2.7.1+cu128`, or `2.7.1` from PyPI."""
    build: TorchBuild | None
    """What the matrix knows of it; None where it does not know the build."""
    cuda: str | None
    """`12.8`, or only the major where nothing more is known; None: no CUDA in it, or not known."""
    without_cuda: bool
    """It is built for the CPU, or for GPUs of others."""

    @property
    def by(self) -> Named:
        """Return the distribution and its version."""
        return Named(TORCH, self.version)

    @property
    def name(self) -> str:
        """Return the same as text."""
        return str(self.by)

    @property
    def cudnn(self) -> str | None:
        """Return the version of cuDNN that it was built with; None: not known."""
        return self.build.cudnn if self.build else None


def installed_torch_of(package: Package, table: TorchTable, platform: str) -> InstalledTorch:
    """Return what is known of the installed distribution `package` on `platform`."""
    parsed = version(package.version)
    local = (parsed.local if parsed else None) or ""
    release = parsed.public if parsed else package.version
    builds = [build for build in table.of(platform) if build.version == release]
    labelled = _CUDA_LOCAL.fullmatch(local)
    build: TorchBuild | None = None
    if labelled:
        label = f"cu{labelled[1]}{labelled[2]}"
        from_index = "." not in local
        alike = [build for build in builds if build.local == label]
        # PyPI's build is on PyTorch's index, too; up to 2.1 the two differ.
        alike.sort(key=lambda build: bool(build.wheels) == from_index)
        build = alike[0] if alike else None
        cuda: str | None = f"{labelled[1]}.{labelled[2]}"
    else:
        on_pypi = next((build for build in builds if build.wheels and not local), None)
        build = on_pypi if on_pypi and _may_be_from_pypi(package, on_pypi) else None
        cuda = build.cuda if build else _major_required(package.requires)
    return InstalledTorch(
        version=package.version,
        build=build,
        cuda=cuda,
        without_cuda=bool(_NO_CUDA.match(local)) or (build is not None and build.cuda is None),
    )


def _may_be_from_pypi(package: Package, build: TorchBuild) -> bool:
    """Return whether `package` may be the build on PyPI: conda's requires no NVIDIA wheels."""
    return not build.pins or not package.requires or _major_required(package.requires) is not None


def _major_required(requires: Iterable[str]) -> str | None:
    """Return the CUDA major that requirements on NVIDIA's wheels show, or None."""
    for line in requires:
        wanted = requirement(line)
        if wanted is None:
            continue
        suffixed = _SUFFIXED.fullmatch(wanted.name)
        if suffixed:
            return suffixed[1]
        if wanted.name == "cuda-toolkit" and wanted.specifier:
            return next(iter(wanted.specifier)).version.partition(".")[0]
    return None


def with_known_requirements(
    package: Package, torch: InstalledTorch, others: Iterable[Package]
) -> Package:
    """Return `package` with the requirements of the matrix where the facts are written by hand.

    Such facts may lack the requirements, or the `cuda-toolkit` that leads to NVIDIA's wheels.
    """
    if torch.build is None:
        return package
    indirect = any(line.startswith("cuda-toolkit") for line in package.requires)
    known = not indirect or any(other.name == "cuda-toolkit" for other in others)
    if package.requires and known:
        return package
    return package._replace(requires=(*package.requires, *torch.build.pins))
