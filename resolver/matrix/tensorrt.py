"""TensorRT: its major in a library's or a distribution's name, and what a build is to have."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet

from ..versions import major, numbers
from .model import Build

INDEX = "https://pypi.nvidia.com"
"""The index with the wheels of TensorRT's libraries; PyPI's placeholders fetch them there."""
LOSE_CUDA = SpecifierSet(">=1.22.0,<=1.23.2")
"""The releases of onnxruntime-gpu that go on with the CPU, not with CUDA, where the TensorRT that a
session asks for cannot be loaded. Sources: https://github.com/microsoft/onnxruntime/issues/25145,
https://github.com/microsoft/onnxruntime/issues/27006; fixed in 1.24.1 by pull request 26994."""
_LIBRARY = re.compile(r"libnvinfer\.so\.(\d+)|(?i:nvinfer(?:_(\d+))?\.dll)")
_WITHOUT_NUMBER = "8"
"""The major of `nvinfer.dll`: of the releases that link it the Linux wheels link TensorRT 8."""
_DISTRIBUTION = re.compile(r"tensorrt(?:-cu\d+)?(?:-libs)?")
LIBRARIES_WHEEL = re.compile(r"tensorrt(?:-cu\d+)?-libs")
"""The distributions that own the folder `tensorrt_libs`."""
_FIRST_BY_CUDA = 10
"""From this major on there is a distribution for each CUDA: `tensorrt-cu12`."""


def library_major(library: str) -> str | None:
    """Return the major of TensorRT for its library: `10` for `libnvinfer.so.10`; else None."""
    match = _LIBRARY.fullmatch(library)
    return (match[1] or match[2] or _WITHOUT_NUMBER) if match else None


def distribution_major(name: str, version: str) -> str | None:
    """Return the major of the TensorRT that a distribution brings; None where it brings none.

    The first ones on PyPI, 0.0.1, are empty.
    """
    brings = _DISTRIBUTION.fullmatch(name) and major(version) != "0"
    return major(version) if brings else None


def requirement(build: Build) -> str | None:
    """Return what installs the TensorRT of `build`: `tensorrt-cu12==10.*`; None if it uses none."""
    wanted = library_major(build.tensorrt or "")
    if wanted is None:
        return None
    by_cuda = f"-cu{major(build.cuda)}" if numbers(wanted) >= (_FIRST_BY_CUDA,) else ""
    return f"tensorrt{by_cuda}=={wanted}.*"
