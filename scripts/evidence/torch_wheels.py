"""`data/torch.toml`: torch's wheels, their CUDA, pins and GPUs; torchvision and torchaudio."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from .documents import TORCH_VARIANTS, VARIANTS_SOURCE
from .index import PLATFORMS
from .metadata import requirements
from .names import is_cuda_library
from .spread import each
from .support import ordered
from .toml_text import Rows, table

if TYPE_CHECKING:
    from .index import Wheel
    from .reader import Reader

OLDEST = Version("1.12")
_CUDA = re.compile(r"^cuda[^=\n]*=\s*'([0-9.]+)'", re.MULTILINE)
_VERSION = re.compile(r"^__version__\s*=\s*'[^'+]*\+?([^']*)'", re.MULTILINE)
_FLAGS = re.compile(rb"(?:(?:sm|compute)_\d+[af]?)(?: (?:sm|compute)_\d+[af]?)+(?=\0)")
_MANGLED = re.compile(r"-[0-9a-f]{8}(?=[.]so)")
_PYTHON_LIBRARY = ("torch/lib/libtorch_python.so", "torch/lib/torch_python.dll")


def tables(reader: Reader, threads: int) -> list[str]:
    """Return the `[[torch]]`, `[[variant]]` and `[[pairing]]` tables."""
    wheels = [
        wheel
        for wheel in reader.wheels("torch")
        if wheel.version >= OLDEST
        and not wheel.version.is_prerelease
        and wheel.platform in PLATFORMS
    ]
    wheels.sort(key=lambda wheel: (wheel.version, wheel.platform, _order(wheel), wheel.file))
    groups = [
        list(group)
        for _, group in groupby(wheels, key=lambda wheel: (wheel.version, wheel.platform))
    ]
    rows = each(lambda group: _row(reader, group), groups, threads)
    versions = sorted({wheel.version for wheel in wheels})
    return [*rows, *_variants(), *_pairings(reader, versions, threads)]


def _row(reader: Reader, wheels: list[Wheel]) -> str:
    """Return one `[[torch]]` table; the first Python's wheel stands for all of them."""
    first = wheels[0]
    contents = reader.contents(first)
    about = reader.text(first, "torch/version.py")
    cuda = _CUDA.search(about)
    local = _VERSION.search(about)
    sass, ptx = _architectures(reader, first) if cuda else ((), ())
    names = {path.rpartition("/")[2] for path in contents.members if path.startswith("torch/lib/")}
    carried = sorted({_MANGLED.sub("", name) for name in names})
    return table(
        "torch",
        {
            "version": str(first.version),
            "platform": first.platform,
            "cuda": cuda[1] if cuda else None,
            "local": local[1] if local and local[1] else None,
            "sass": list(sass) if cuda else None,
            "ptx": list(ptx) if cuda else None,
            "glibc": first.glibc,
            "carries": [name for name in carried if is_cuda_library(name)] or None,
            "requires": [
                line
                for line in requirements(contents.metadata)
                if line.startswith(("nvidia", "cuda"))
            ]
            if cuda
            else None,
            "wheels": Rows(
                {
                    "python": wheel.python,
                    "size": reader.size(wheel),
                    "sha256": wheel.sha256,
                    "file": wheel.file,
                }
                for wheel in _one_for_each_python(wheels)
            ),
        },
    )


def _architectures(reader: Reader, wheel: Wheel) -> tuple[tuple[str, ...], tuple[str, ...]]:
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


def _one_for_each_python(wheels: list[Wheel]) -> list[Wheel]:
    """Return one wheel for each Python: the last by name, which has the highest build number."""
    return list({wheel.python: wheel for wheel in wheels}.values())


def _variants() -> list[str]:
    """Return the builds that PyTorch's own index has and this one lacks, from documents."""
    return [
        table(
            "variant",
            {"version": version, "locals": list(variants), "source": VARIANTS_SOURCE},
        )
        for version, variants in TORCH_VARIANTS.items()
    ]


def _pairings(reader: Reader, versions: list[Version], threads: int) -> list[str]:
    """Return which torchvision and torchaudio releases require each torch release exactly."""
    rows: dict[Version, dict[str, list[str]]] = {version: {} for version in versions}
    for name in ("torchvision", "torchaudio"):
        one = {
            (wheel.version, wheel.platform): wheel
            for wheel in reader.wheels(name)
            if not wheel.version.is_prerelease and wheel.platform in PLATFORMS
        }
        wheels = [one[place] for place in sorted(one)]
        pins = each(lambda wheel: _torch_pin(reader, wheel), wheels, threads)
        pairs = sorted(
            {(wheel.version, pin) for wheel, pin in zip(wheels, pins, strict=True) if pin in rows}
        )
        for version, pin in pairs:
            rows[pin].setdefault(name, []).append(str(version))
    return [
        table("pairing", {"torch": str(version), **row}) for version, row in rows.items() if row
    ]


def _torch_pin(reader: Reader, wheel: Wheel) -> Version | None:
    """Return the torch release that a wheel requires with `==`; None where it names none."""
    for line in requirements(reader.contents(wheel).metadata):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.name == "torch":
            for specifier in requirement.specifier:
                if specifier.operator == "==" and not specifier.version.endswith(".*"):
                    return Version(specifier.version)
    return None


def _order(wheel: Wheel) -> tuple[int, str]:
    digits = re.search(r"\d+", wheel.python.removeprefix("cp3"))
    return (int(digits[0]) if digits else 0), wheel.python
