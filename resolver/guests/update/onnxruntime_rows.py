"""`data/onnxruntime.toml`: the rows, from what was read of each build."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from ...binaries import gpu_targets
from ...binaries.library_names import DRIVER, is_cuda_library
from ...evidence.metadata import extras, requirements
from ...evidence.wheels import EvidenceError
from ...versions import numbers
from .catalogue import taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .catalogue import Catalogue
    from .onnxruntime import ReadBuild

_MSVC = re.compile(r"(?:msvcp|vcruntime|concrt|vcomp)\w*\.dll\Z", re.IGNORECASE)
_CUDNN = re.compile(r"(?:lib)?cudnn(?:\.so\.|64_)(\d+)(?:\.dll)?\Z")


def needs(build: ReadBuild, catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the CUDA libraries that a build's provider links or loads by name, sorted.

    Loaded are the libraries of its own CUDA major that NVIDIA's wheels hold and whose name it
    carries without linking them, and the driver's. Up to 1.15 the Linux provider links nothing:
    the wheel's `_ld_preload.py` loads by name what the provider's version records want.
    """
    linked = {name for name in build.library.links + build.library.delayed if is_cuda_library(name)}
    found: dict[str, dict[str, Any]] = {}
    for name in sorted({*build.library.mentions, *linked}):
        how = "links" if name in linked else "loads"
        if name in DRIVER:
            found[name] = {"library": name, "how": how}
            continue
        owner = catalogue.provider(name, build.platform, build.major, taken(build, name))
        if owner is not None:
            distribution, since = owner
            found[name] = {
                "library": name,
                "how": how,
                "distribution": distribution,
                "since": since,
            }
        elif name in linked:
            raise EvidenceError(
                f"{build.version} {build.platform} links {name}: no release has all it takes"
            )
    return list(found.values())


def rows(builds: Sequence[ReadBuild], catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the rows `[[build]]`."""
    return [_row(build, catalogue) for build in builds]


def _row(build: ReadBuild, catalogue: Catalogue) -> dict[str, Any]:
    needed = needs(build, catalogue)
    sass, ptx = gpu_targets.supported(build.library.groups)
    floors = [wheel.glibc for wheel, _ in build.wheels if wheel.glibc]
    cudnn = {match[1] for need in needed if (match := _CUDNN.match(str(need["library"])))}
    required = {wheel.file: requirements(inside.metadata) for wheel, inside in build.wheels}
    usual = Counter(tuple(lines) for lines in required.values()).most_common()
    common = max((item for item in usual if item[1] == usual[0][1]), key=lambda item: item[0])[0]
    optional = extras(build.wheels[-1][1].metadata)
    row = {
        "version": build.version,
        "platform": build.platform,
        "cuda": build.cuda,
        "cuda_source": build.cuda_source,
        "cudnn": min(cudnn) if cudnn else None,
        "needs": needed,
        "tensorrt": build.tensorrt,
        "msvc": sorted(name for name in build.library.links if _MSVC.fullmatch(name)) or None,
        "toolset": build.toolset or None,
        "sass": list(sass),
        "ptx": list(ptx),
        "partial": list(gpu_targets.partial(build.library.groups)) or None,
        "glibc": min(floors, key=numbers) if floors else None,
        "preload_dlls": build.preload,
        "preload_dlls_note": build.note or None,
        "requires": list(common),
        "extras": optional or None,
        "unresolvable": _unresolvable(build, optional, catalogue) or None,
        "wheels": [
            {
                "python": wheel.python,
                "size": inside.size,
                "sha256": wheel.sha256,
                "file": wheel.file,
            }
            | ({} if tuple(own := required[wheel.file]) == common else {"requires": own})
            for wheel, inside in build.wheels
        ],
    }
    return {key: value for key, value in row.items() if value is not None}


def _unresolvable(
    build: ReadBuild, optional: dict[str, list[str]], catalogue: Catalogue
) -> list[str]:
    """Return the extras' requirements on NVIDIA's wheels that no real wheel satisfies."""
    missing = []
    for line in sorted({line for lines in optional.values() for line in lines}):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if not requirement.name.startswith("nvidia-"):
            continue
        if not any(
            release.wheel.platform == build.platform
            and requirement.specifier.contains(release.wheel.version)
            for release in catalogue.real(requirement.name)
        ):
            missing.append(line)
    return missing
