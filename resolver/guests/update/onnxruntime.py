"""Builds of onnxruntime-gpu: what their wheels say of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from ...binaries import gpu_targets
from ...binaries.library_names import PROVIDER, is_cuda_library
from ...evidence.wheels import EvidenceError, IndexWheel
from ...versions import numbers
from .spread import each

if TYPE_CHECKING:
    from .library import ReadLibrary
    from .reader import Reader, WheelOutside

_TENSORRT = re.compile(r".*/(?:lib)?onnxruntime_providers_tensorrt\.(?:so|dll)\Z")
_NVINFER = re.compile(r"libnvinfer\.so\.\d+|nvinfer(?:_\d+)?\.dll")
_CUDA_VERSION = re.compile(r"^cuda_version\s*=\s*['\"](\d+\.\d+)", re.MULTILINE)

ALIKE = 1.01
"""How many times as large as the smallest the largest CUDA provider of one build may be.

Each wheel's provider was compiled anew, for each Python, from the same sources with the same
settings: the first is read, the others must have about its size.
"""

ISA_OF_TOOLKIT = {
    "7.4": "11.4",
    "7.5": "11.5",
    "7.6": "11.6",
    "7.7": "11.7",
    "7.8": "11.8",
    "8.0": "12.0",
    "8.1": "12.1",
    "8.2": "12.2",
    "8.3": "12.3",
    "8.4": "12.4",
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    "9.0": "13.0",
}
"""PTX ISA version to the toolkit release that writes it.

Source: https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes. 8.5 is left out:
both 12.5 and 12.6 write it.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadBuild:
    """One release for one platform."""

    version: str
    platform: str
    wheels: list[tuple[IndexWheel, WheelOutside]]
    library: ReadLibrary
    """The CUDA provider."""
    cuda: str
    cuda_source: str
    preload: bool
    note: str
    toolset: str = ""
    """The MSVC build tools that linked the provider, on Windows."""
    tensorrt: str | None = None
    """The library of TensorRT that its TensorRT provider links or loads: `libnvinfer.so.10`."""

    @property
    def major(self) -> str:
        """The CUDA major it is built for."""
        return self.cuda.partition(".")[0]


def builds(reader: Reader, threads: int, *, every_wheel: bool = False) -> list[ReadBuild]:
    """Return every build on the index, sorted by release, then platform.

    With `every_wheel` the CUDA provider of each Python's wheel is read, not only the first's, and
    must say the same.
    """
    wheels = [
        wheel for wheel in reader.wheels("onnxruntime-gpu") if not wheel.version.is_prerelease
    ]
    wheels.sort(key=lambda wheel: (wheel.version, wheel.platform, _python_order(wheel.python)))
    groups = [
        list(group)
        for _, group in groupby(wheels, key=lambda wheel: (wheel.version, wheel.platform))
    ]
    return each(lambda group: _build(reader, group, every_wheel=every_wheel), groups, threads)


def _build(reader: Reader, wheels: list[IndexWheel], *, every_wheel: bool) -> ReadBuild:
    contents = [(wheel, reader.contents(wheel)) for wheel in wheels]
    providers = []
    for wheel, inside in contents:
        path = next((path for path in inside.members if PROVIDER.fullmatch(path)), None)
        if path is None:
            raise EvidenceError(f"{wheel.file} has no CUDA provider")
        providers.append((wheel, path, inside.members[path][0]))
    sizes = [size for _, _, size in providers]
    if max(sizes) > min(sizes) * ALIKE:
        raise EvidenceError(f"{wheels[0].version}: the wheels' CUDA providers differ in size")
    wheel, path, _ = providers[0]
    library = reader.library(wheel, path)
    for other, place, _ in providers[1:] if every_wheel else ():
        if _judged(reader.library(other, place)) != _judged(library):
            raise EvidenceError(f"{other.file} and {wheel.file}: the CUDA providers differ")
    folder = path.rpartition("capi/")[0]
    cuda, source = _toolkit(reader, wheel, folder, library)
    init = reader.text(wheel, f"{folder}__init__.py")
    preload = "def preload_dlls" in init
    return ReadBuild(
        version=str(wheel.version),
        platform=wheel.platform,
        wheels=contents,
        library=library,
        cuda=cuda,
        cuda_source=source,
        preload=preload,
        note=_preload_note(init, cuda) if preload else "",
        toolset=reader.toolset(wheel, path) if path.endswith(".dll") else "",
        tensorrt=tensorrt_library(reader, wheel),
    )


def tensorrt_library(reader: Reader, wheel: IndexWheel) -> str | None:
    """Return the library of TensorRT that a wheel's TensorRT provider links; None without one.

    Up to 1.15 the Linux provider does not link it but holds its name still, and `_ld_preload.py`
    loads it. Raises EvidenceError where the provider names several.
    """
    members = reader.contents(wheel).members
    path = next((path for path in members if _TENSORRT.fullmatch(path)), None)
    if path is None:
        return None
    named = sorted(filter(_NVINFER.fullmatch, frozenset().union(*reader.uses(wheel, path))))
    if len(named) > 1:
        raise EvidenceError(f"{wheel.file}: its TensorRT provider names {', '.join(named)}")
    return next(iter(named), None)


def _judged(library: ReadLibrary) -> tuple[object, ...]:
    """Return what the data says of a provider; what it does not say may differ."""
    symbols = {owner: names for owner, names in library.imports.items() if is_cuda_library(owner)}
    mentions = set(filter(is_cuda_library, library.mentions))
    return library.links, mentions, symbols, gpu_targets.supported(library.groups), library.isa


def _toolkit(
    reader: Reader, wheel: IndexWheel, folder: str, library: ReadLibrary
) -> tuple[str, str]:
    """Return the toolkit release that built the provider, and what says so."""
    said = _CUDA_VERSION.search(reader.text(wheel, f"{folder}capi/build_and_package_info.py"))
    written = max((numbers(isa) for isa in library.isa), default=())
    from_ptx = ISA_OF_TOOLKIT.get(".".join(map(str, written)), "")
    if said:
        if from_ptx and from_ptx != said[1]:
            return said[1], f"build_and_package_info.py; its PTX is of {from_ptx}"
        return said[1], "build_and_package_info.py"
    if not from_ptx:
        raise EvidenceError(f"{wheel.file}: nothing says which CUDA toolkit built it")
    return from_ptx, f"PTX ISA {'.'.join(map(str, written))} in the provider"


def _preload_note(init: str, cuda: str) -> str:
    if cuda.startswith("13.") and 'f"cu{' not in init:
        return "looks for CUDA 13's libraries in the folders of CUDA 12's wheels"
    return ""


def _python_order(tag: str) -> tuple[int, str]:
    digits = re.search(r"\d+", tag.removeprefix("cp3"))
    return (int(digits[0]) if digits else 0), tag
