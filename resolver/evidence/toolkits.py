"""`data/toolkits.toml`: which component wheels belong to a CUDA toolkit release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from ..utils.toml_writer import Value, table
from .metadata import all_requirements
from .nvidia import component
from .wheels import PLATFORMS

if TYPE_CHECKING:
    from packaging.version import Version

    from .nvidia import ReadRelease
    from .reader import Reader
    from .wheels import IndexWheel

_COMPONENTS = frozenset({"cublas", "cuda-runtime", "cufft", "curand", "cuda-nvrtc", "nvjitlink"})


def tables(reader: Reader, known: dict[str, list[ReadRelease]]) -> list[str]:
    """Return a `[[toolkit]]` table for each release of the `cuda-toolkit` metapackage."""
    wheels: dict[Version, IndexWheel] = {}
    for wheel in reader.wheels("cuda-toolkit"):
        if not wheel.version.is_prerelease:
            wheels.setdefault(wheel.version, wheel)
    return [_table(reader, wheels[version], known) for version in sorted(wheels)]


def _table(reader: Reader, wheel: IndexWheel, known: dict[str, list[ReadRelease]]) -> str:
    components: dict[str, Value] = {}
    missing: dict[str, Value] = {}
    ranges: dict[str, Value] = {}
    for line in sorted(set(all_requirements(reader.contents(wheel).metadata))):
        requirement = Requirement(line)
        if component(requirement.name) not in _COMPONENTS or requirement.name not in known:
            continue
        fitting = [
            release
            for release in known[requirement.name]
            if requirement.specifier.contains(release.wheel.version)
        ]
        if not fitting:
            missing[requirement.name] = list(PLATFORMS)
            continue
        if not any(spec.operator == "==" for spec in requirement.specifier):
            ranges[requirement.name] = str(requirement.specifier)
        # A few pins are ranges (nvJitLink from 12.8.2 on): a newer toolkit's is not this one's.
        own = [one for one in fitting if one.wheel.version.release[:2] == wheel.version.release[:2]]
        newest = max(release.wheel.version for release in own or fitting)
        components[requirement.name] = str(newest)
        there = {r.wheel.platform for r in fitting if r.wheel.version == newest}
        usual = {r.wheel.platform for r in known[requirement.name]}
        lacking = [name for name in PLATFORMS if name in usual - there]
        if lacking:
            missing[requirement.name] = lacking
    return table(
        "toolkit",
        {
            "version": str(wheel.version),
            "source": f"{wheel.file} METADATA",
            "components": dict(sorted(components.items())),
            "ranges": dict(sorted(ranges.items())) or None,
            "missing": dict(sorted(missing.items())) or None,
        },
    )
