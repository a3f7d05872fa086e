"""`data/consumers.toml`: which CUDA libraries other distributions link or load by name.

Each wheel's binaries are read up to their GPU code. What lies in the wheel itself is not needed
from elsewhere. Releases between two that say the same were not all read (`spread.by_bisection`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

from ortgpu_fix.binaries import library_names
from ortgpu_fix.evidence.wheels import PLATFORMS
from ortgpu_fix.guests.update.spread import by_bisection, each
from ortgpu_fix.utils.toml_writer import Value, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ortgpu_fix.evidence.wheels import IndexWheel
    from ortgpu_fix.guests.update.reader import Reader

DISTRIBUTIONS: Mapping[str, str] = {
    "bitsandbytes": "0.43",
    "ctranslate2": "3.0",
    "cupy-cuda11x": "12.0",
    "cupy-cuda12x": "12.0",
    "cupy-cuda13x": "13.0",
    "faiss-gpu-cu11": "1.8",
    "faiss-gpu-cu12": "1.8",
    "jax-cuda12-pjrt": "0.4.26",
    "jax-cuda13-pjrt": "0.7",
    "libcudf-cu12": "24.0",
    "libcudf-cu13": "25.0",
    "libcuml-cu12": "24.0",
    "libcuml-cu13": "25.0",
    "nvidia-dali-cuda110": "1.30",
    "nvidia-dali-cuda120": "1.30",
    "nvidia-dali-cuda130": "1.50",
    "onnxruntime-genai-cuda": "0.4",
    "paddlepaddle-gpu": "2.5",
    "tensorflow": "2.12",
    "vllm": "0.6",
    "warp-lang": "1.0",
    "xformers": "0.0.27",
}
"""The distributions that are read, and the oldest release of each."""
STATED: Mapping[str, str] = {
    "jax-cuda12-pjrt": "jax_plugins/xla_cuda12/__init__.py",
    "jax-cuda13-pjrt": "jax_plugins/xla_cuda13/__init__.py",
    "paddlepaddle-gpu": "paddle/version/__init__.py",
    "tensorflow": "tensorflow/python/platform/build_info.py",
}
"""The file that tells the CUDA and the cuDNN of a distribution whose binaries do not hold the names
of libraries: it puts them together while it runs, or loads them in Python."""
_VERSION = re.compile(r"\b(cuda|cudnn)_version'?\s*[=,]\s*'(\d+)")
_SONAME = re.compile(r'"(lib\w+\.so\.\d+)"')
_NAMED = re.compile(r"-cu(?:da)?(1[1-9])")
_MAJOR = re.compile(r"(?:lib)?(?:cublas(?:Lt)?|cudart|nvrtc|nvJitLink)(?:\.so\.|(?:64)?_)(1[1-9])")
_CUFFT = re.compile(r"(?:lib)?cufft(?:\.so\.|64_)(1[0-2])$")
_CUDNN = re.compile(r"(?:lib)?cudnn(?:\.so\.|64_)(\d+)")


class Reading(NamedTuple):
    """What the binaries of a wheel need from elsewhere."""

    cuda: str | None
    cudnn: str | None
    needs: tuple[str, ...]


def tables(reader: Reader, threads: int) -> list[str]:
    """Return a `[[consumer]]` table for each range of releases that need the same."""
    tasks = [(name, platform) for name in sorted(DISTRIBUTIONS) for platform in PLATFORMS]
    return [row for rows in each(lambda task: _rows(reader, *task), tasks, threads) for row in rows]


def _rows(reader: Reader, name: str, platform: str) -> list[str]:
    wheels = _newest_python(reader.wheels(name), Version(DISTRIBUTIONS[name]), platform)
    readings = by_bisection(wheels, lambda wheel: read(reader, name, wheel))
    rows: list[str] = []
    start = 0
    for end in range(1, len(wheels) + 1):
        if end < len(wheels) and readings[end] == readings[start]:
            continue
        # Named for CUDA and without a name of a library: it puts them together while it runs.
        if readings[start].needs or not _NAMED.search(name):
            rows.append(_row(name, platform, wheels[start], wheels[end - 1], readings[start]))
        start = end
    return rows


def _row(name: str, platform: str, first: IndexWheel, last: IndexWheel, reading: Reading) -> str:
    keys: dict[str, Value | None] = {
        "name": name,
        "platform": platform,
        "first": str(first.version),
        "last": str(last.version),
        "cuda": reading.cuda,
        "cudnn": reading.cudnn,
        "needs": list(reading.needs),
        "source": last.file,
    }
    return table("consumer", keys)


def _newest_python(
    wheels: Iterable[IndexWheel], oldest: Version, platform: str
) -> list[IndexWheel]:
    """Return one wheel a release, for the newest Python, sorted by release."""
    chosen: dict[Version, IndexWheel] = {}
    for wheel in wheels:
        if wheel.platform != platform or wheel.version < oldest or wheel.version.is_prerelease:
            continue
        before = chosen.get(wheel.version)
        if before is None or (len(wheel.python), wheel.python) > (
            len(before.python),
            before.python,
        ):
            chosen[wheel.version] = wheel
    return [chosen[version] for version in sorted(chosen)]


def read(reader: Reader, name: str, wheel: IndexWheel) -> Reading:
    """Return what the wheel of the distribution `name` needs from elsewhere."""
    used: set[str] = set()
    brought: set[str] = set()
    for member, texts in reader.natives(wheel).items():
        brought.add(member.rpartition("/")[2])
        used.update(filter(library_names.is_cuda_library, texts))
    needs = {library for library in used - brought - library_names.DRIVER if _is_versioned(library)}
    text = reader.text(wheel, STATED[name]) if name in STATED else ""
    needs.update(filter(library_names.is_cuda_library, _SONAME.findall(text)))
    stated = dict(_VERSION.findall(text))
    if "cudnn" in stated:
        needs.add(_cudnn_name(stated["cudnn"], wheel.platform))
    named = _NAMED.search(name)
    majors = {major for library in needs if (major := cuda_of(library))}
    if named and named[1] in majors:  # a file that is the same for each CUDA
        needs = {library for library in needs if cuda_of(library) in {None, named[1]}}
        majors = {named[1]}
    if not majors and "cuda" in stated:
        majors = {stated["cuda"]}
    cudnns = {match[1] for match in map(_CUDNN.match, needs) if match}
    return Reading(
        cuda=majors.pop() if len(majors) == 1 else None,
        cudnn=cudnns.pop() if len(cudnns) == 1 else None,
        needs=tuple(sorted(needs)),
    )


def cuda_of(library: str) -> str | None:
    """Return the CUDA major that has a library of this name, or None where several have."""
    match = _MAJOR.match(library)
    if match:
        return match[1]
    cufft = _CUFFT.match(library)
    return str(int(cufft[1]) + 1) if cufft else None


def _is_versioned(library: str) -> bool:
    return re.search(r"\.so\.\d|_\d+\.dll\Z", library) is not None


def _cudnn_name(major: str, platform: str) -> str:
    return f"cudnn64_{major}.dll" if platform.startswith("windows") else f"libcudnn.so.{major}"
