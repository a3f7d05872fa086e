"""The torch of an environment: which build it is, what its CUDA is, and what it leaves to choose.

torch loads CUDA's libraries into the process that onnxruntime loads them into, so the two
share what has one name: the CUDA major and the cuDNN major must be the same. What torch pins of
NVIDIA's wheels is a requirement like any other; what it carries in `torch/lib` must do for both.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..facts.model import Package
from ..matrix.torch import TORCH, TorchBuild, TorchTable
from ..versions import requirement, version

_CUDA_LOCAL = re.compile(r"cu(\d{2})(\d)(?:\.with\.pypi\.cudnn)?")
_NO_CUDA = re.compile(r"cpu|rocm|xpu")
_SUFFIXED = re.compile(r"nvidia-[a-z-]+-cu(\d{2})")


class InstalledTorch(NamedTuple):
    """The torch that is there, or that a plan would put there."""

    version: str
    """As it is installed: `2.7.1+cu128`, or `2.7.1` from PyPI."""
    build: TorchBuild | None
    """What the matrix knows of it; None where it does not know the build."""
    cuda: str | None
    """`12.8`, or only the major where nothing tells more; None: no CUDA in it, or not known."""
    without_cuda: bool
    """It is built for the CPU, or for GPUs of others."""

    @property
    def name(self) -> str:
        """Return the distribution and its version."""
        return f"{TORCH} {self.version}"

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
        # Both are there for the build that PyPI has; up to 2.1 they are not made alike.
        alike.sort(key=lambda build: bool(build.wheels) == from_index)
        build = alike[0] if alike else None
        cuda: str | None = f"{labelled[1]}.{labelled[2]}"
    elif _NO_CUDA.match(local):
        cuda = None
    else:
        found = next((build for build in builds if build.wheels), None) if not local else None
        build = found if found and _requires_like(package, found) else None
        cuda = build.cuda if build else _major_required(package.requires)
    return InstalledTorch(
        version=package.version,
        build=build,
        cuda=cuda,
        without_cuda=bool(_NO_CUDA.match(local)) or (build is not None and build.cuda is None),
    )


def _requires_like(package: Package, build: TorchBuild) -> bool:
    """Tell whether `package` may be the build on PyPI: conda's requires none of NVIDIA's wheels.

    A file written by hand lists no requirements at all.
    """
    return not build.pins or not package.requires or _major_required(package.requires) is not None


def _major_required(requires: Iterable[str]) -> str | None:
    """Return the CUDA major that requirements on NVIDIA's wheels tell, or None."""
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
    """Return `package` with what the matrix knows that it requires, where the facts do not say it.

    A file written by hand may leave out the requirements, or the `cuda-toolkit` that they go by.
    """
    if torch.build is None:
        return package
    indirect = any(line.startswith("cuda-toolkit") for line in package.requires)
    known = not indirect or any(other.name == "cuda-toolkit" for other in others)
    if package.requires and known:
        return package
    return package._replace(requires=(*package.requires, *torch.build.pins))
