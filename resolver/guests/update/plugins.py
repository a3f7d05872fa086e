"""`data/plugins.toml`: plugins for NVIDIA's GPUs, and the plain onnxruntime that they require.

Of each the newest release: of a plugin for each platform, of onnxruntime for each Python too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ...binaries import gpu_targets
from ...binaries.library_names import DRIVER, is_cuda_library
from ...evidence.metadata import all_requirements, requirements
from ...evidence.wheels import PLATFORMS, EvidenceError, IndexWheel
from .spread import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .reader import Reader

ON_PYPI = ("onnxruntime-ep-nv-tensorrt-rtx-cu13", "onnxruntime-ep-nv-tensorrt-rtx-cu12")
NAMES = ("onnxruntime-ep-cuda13", "onnxruntime-ep-cuda12", *ON_PYPI)
"""Those of an index that need not have all; the names of CUDA's own are upstream's."""
OLDEST = SpecifierSet(">=1.24")
"""The releases of onnxruntime that plugins of today can be registered in.

Source: the README of onnxruntime-ep-nv-tensorrt-rtx, https://onnxruntime.ai/docs/execution-providers/plugin-ep-libraries/.
"""
_LIBRARY = re.compile(r"[^/]+/(?:lib)?onnxruntime_providers_\w+\.(?:so|dll)")
_PROVIDER = re.compile(r"['\"](\w+ExecutionProvider)['\"]")
_CUDART = re.compile(r"(?:libcudart\.so\.|cudart64_)(\d+(?:\.\d+)?)")
_WANTED = re.compile(r"\bonnxruntime\s*([<>=!~]=?\s*[\d.]+)")
"""How a description names the onnxruntime that it is for: `pip install onnxruntime>=1.24`."""
_TAKES = re.compile(rb"compute capabilities are [\d., ]*(?:and )?\d+\.\d or newer")
"""How a provider names the GPUs that it gives a device for, and no others: `Supported compute
capabilities are 8.6, 8.9, and 12.0 or newer`. Its library may carry code for more of them."""


def rows(
    reader: Reader, threads: int, names: Sequence[str] = NAMES, *, known: Reader | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of both kinds, by kind: of the newest wheels those that `reader` lists.

    `known` lists those of the matrix too, where `reader` does not.
    """

    def listed(name: str, releases: SpecifierSet) -> list[IndexWheel]:
        wheels = [one for one in (known or reader).wheels(name) if one.version in releases]
        fresh = {one.file for one in reader.wheels(name)}
        return [one for one in _newest(wheels) if one.file in fresh]

    plugins = [wheel for name in names for wheel in listed(name, SpecifierSet())]
    plain = listed("onnxruntime", OLDEST)
    return {
        "plugin": each(lambda wheel: _plugin(reader, wheel), plugins, threads),
        "wheel": each(lambda wheel: _onnxruntime(reader, wheel), plain, threads),
    }


def _newest(wheels: Sequence[IndexWheel]) -> list[IndexWheel]:
    """Return the wheels of the newest release for each platform and Python, sorted by both."""
    chosen = {
        (PLATFORMS.index(one.platform), len(one.python), one.python): one
        for one in sorted(wheels, key=lambda one: one.version)
        if one.platform in PLATFORMS and not one.version.is_prerelease
    }
    return [wheel for _, wheel in sorted(chosen.items())]


def _outside(wheel: IndexWheel, size: int) -> dict[str, Any]:
    return {
        "version": str(wheel.version),
        "platform": wheel.platform,
        **({"glibc": wheel.glibc} if wheel.glibc else {}),
        "size": size,
        "sha256": wheel.sha256,
        "file": wheel.file,
    }


def _onnxruntime(reader: Reader, wheel: IndexWheel) -> dict[str, Any]:
    inside = reader.contents(wheel)
    row = {"python": wheel.python, **_outside(wheel, inside.size)}
    return {**row, "requires": requirements(inside.metadata)}


def _plugin(reader: Reader, wheel: IndexWheel) -> dict[str, Any]:
    """Return what the provider in a wheel links, and the GPU code of its largest library."""
    inside = reader.contents(wheel)
    path = next((path for path in inside.members if _LIBRARY.fullmatch(path)), "")
    init = reader.text(wheel, f"{path.rpartition('/')[0]}/__init__.py") if path else ""
    provider = _PROVIDER.search(init)
    if provider is None:
        raise EvidenceError(f"{wheel.file} has no provider that its module names")
    native = reader.library(wheel, path)
    brought = [name.rpartition("/")[2] for name in inside.members]
    used = [name for name in (*native.links, *native.delayed) if is_cuda_library(name)]
    runtimes = [match[1] for name in (*brought, *used) if (match := _CUDART.match(name))]
    if not runtimes:
        raise EvidenceError(f"{wheel.file} neither links nor brings a CUDA runtime")
    largest = max(inside.members, key=lambda name: inside.members[name][0])
    sass, ptx = gpu_targets.supported(reader.library(wheel, largest).groups)
    return {
        "name": canonicalize_name(wheel.file.partition("-")[0]),
        **_outside(wheel, inside.size),
        "provider": provider[1],
        "cuda": runtimes[0] if "." in runtimes[0] else f"{runtimes[0]}.0",
        "onnxruntime": _wanted(inside.metadata),
        "needs": sorted({*used} - {*brought} - DRIVER),
        "sass": list(sass),
        "ptx": list(ptx),
        **_taken(reader.texts_in(wheel, [path], _TAKES)),
        **({"toolset": reader.toolset(wheel, path)} if path.endswith(".dll") else {}),
    }


def _taken(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the GPUs that a provider says it takes, as specifiers of which one has to fit."""
    named = re.findall(r"\d+\.\d", texts[0]) if texts else []
    taken = [f"=={capability}" for capability in named[:-1]] + [f">={each}" for each in named[-1:]]
    return {"capabilities": taken} if taken else {}


def _wanted(metadata: str) -> str:
    """Return the releases of onnxruntime that a plugin requires, or that its description names."""
    lines = [Requirement(line) for line in all_requirements(metadata)]
    required = [one.specifier for one in lines if canonicalize_name(one.name) == "onnxruntime"]
    described = _WANTED.search(metadata)
    if required or described is None:
        return str(required[0]) if required else ""
    return described[1].replace(" ", "")
