"""Rows of torch's wheels, their CUDA, pins and GPUs, and of torchvision's and torchaudio's."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from ...binaries.gpu_targets import ordered
from ...binaries.library_names import is_cuda_library
from ...evidence.metadata import requirements
from ...evidence.wheels import PLATFORMS
from .spread import each

if TYPE_CHECKING:
    from ...evidence.wheels import IndexWheel
    from .reader import Reader

OLDEST = Version("1.12")
DOMAIN_LIBRARIES = {"torchaudio": Version("0.12"), "torchvision": Version("0.13")}
"""What is built against one release of torch, from the releases that belong to the oldest."""
_CUDA = re.compile(r"^cuda[^=\n]*=\s*'([0-9.]+)'", re.MULTILINE)
_VERSION = re.compile(r"^__version__\s*=\s*'[^'+]*\+?([^']*)'", re.MULTILINE)
_FLAGS = re.compile(rb"(?:(?:sm|compute)_\d+[af]?)(?: (?:sm|compute)_\d+[af]?)+(?=\0)")
_MANGLED = re.compile(r"-[0-9a-f]{8}(?=[.]so)")
_PYTHON_LIBRARY = ("torch/lib/libtorch_python.so", "torch/lib/torch_python.dll")


def rows(reader: Reader, threads: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows `[[torch]]` and `[[companion]]`, by their kind."""
    groups = _groups(reader, "torch", OLDEST)
    builds = each(lambda group: _row(reader, group), groups, threads)
    beside = [
        group
        for name, oldest in DOMAIN_LIBRARIES.items()
        for group in _groups(reader, name, oldest)
    ]
    companions = each(lambda group: _companion(reader, group), beside, threads)
    return {"torch": builds, "companion": companions}


def _groups(reader: Reader, name: str, oldest: Version) -> list[list[IndexWheel]]:
    """Return a wheel for each Python, by release and platform, the oldest Python's first.

    Of several it is the one with the highest build number, which pip and uv take.
    """
    wheels = [
        wheel
        for wheel in reader.wheels(name)
        if wheel.version >= oldest
        and not wheel.version.is_prerelease
        and wheel.platform in PLATFORMS
    ]
    wheels.sort(key=lambda wheel: (wheel.version, wheel.platform, _order(wheel), wheel.build))
    groups = groupby(wheels, key=lambda wheel: (wheel.version, wheel.platform))
    return [list({wheel.python: wheel for wheel in group}.values()) for _, group in groups]


def _row(reader: Reader, wheels: list[IndexWheel]) -> dict[str, Any]:
    """Return one row `[[torch]]`; the first Python's wheel stands for all of them."""
    first = wheels[0]
    contents = reader.contents(first)
    about = reader.text(first, "torch/version.py")
    cuda = _CUDA.search(about)
    local = _VERSION.search(about)
    sass, ptx = _architectures(reader, first) if cuda else ((), ())
    names = {path.rpartition("/")[2] for path in contents.members if path.startswith("torch/lib/")}
    carried = sorted({_MANGLED.sub("", name) for name in names})
    row = {
        "version": str(first.version),
        "platform": first.platform,
        "cuda": cuda[1] if cuda else None,
        "local": local[1] if local and local[1] else None,
        "sass": list(sass) if cuda else None,
        "ptx": list(ptx) if cuda else None,
        "glibc": first.glibc,
        "carries": [name for name in carried if is_cuda_library(name)] or None,
        "requires": [
            line for line in requirements(contents.metadata) if line.startswith(("nvidia", "cuda"))
        ]
        if cuda
        else None,
        "wheels": _wheels(reader, wheels),
    }
    return {key: value for key, value in row.items() if value is not None}


def _wheels(reader: Reader, wheels: list[IndexWheel]) -> list[dict[str, Any]]:
    return [
        {
            "python": wheel.python,
            "size": reader.size(wheel),
            "sha256": wheel.sha256,
            "file": wheel.file,
        }
        for wheel in wheels
    ]


def _architectures(reader: Reader, wheel: IndexWheel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `torch.cuda.get_arch_list()` answers, as targets of machine code and PTX.

    The list is a text in `libtorch_python`: `sm_75 sm_80 compute_90`.
    """
    found = reader.texts_in(wheel, _PYTHON_LIBRARY, _FLAGS)
    flags = max(found, key=len, default="").split()
    targets = [
        (kind, f"{number[:-1]}.{number[-1]}{suffix}")
        for kind, number, suffix in re.findall(r"(sm|compute)_(\d+)([af]?)", " ".join(flags))
    ]
    return (
        ordered(target for kind, target in targets if kind == "sm"),
        ordered(target for kind, target in targets if kind == "compute"),
    )


def _companion(reader: Reader, wheels: list[IndexWheel]) -> dict[str, Any]:
    """Return one row `[[companion]]`; the first Python's wheel stands for all of them."""
    first = wheels[0]
    return {
        "name": first.file.partition("-")[0],
        "version": str(first.version),
        "platform": first.platform,
        "torch": _torch_specifier(reader, first),
        **({"glibc": first.glibc} if first.glibc else {}),
        "wheels": _wheels(reader, wheels),
    }


def _torch_specifier(reader: Reader, wheel: IndexWheel) -> str:
    """Return what a wheel requires of torch; empty where it takes any."""
    for line in requirements(reader.contents(wheel).metadata):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.name == "torch":
            return str(requirement.specifier)
    return ""


def _order(wheel: IndexWheel) -> tuple[int, str]:
    digits = re.search(r"\d+", wheel.python.removeprefix("cp3"))
    return (int(digits[0]) if digits else 0), wheel.python
