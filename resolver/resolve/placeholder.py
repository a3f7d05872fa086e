"""The version of the placeholder `onnxruntime`: that of onnxruntime-gpu, or the one that is pinned.

Many releases of onnxruntime exist for the CPU alone. Where packages pin one of them, the nearest
release of onnxruntime-gpu of the same minor version serves them, and the placeholder carries the
pinned version with a local label, which `==` does not compare (PEP 440, "Version matching").
Without the label pip and uv would prefer the index's CPU wheel of that very version.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..companions.contents import LABEL
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..versions import allows, newest_first, numbers
from .dependencies import wheel_for
from .environment import Demand
from .situation import Situation


def nearest_pin(release: str, situation: Situation) -> str | None:
    """Return the version that packages pin, where `release` is another one of its minor version.

    None where they allow `release`, or another minor version, or a build that is made for this
    Python: then that is the answer.
    """
    demands = situation.demanded(CPU_BUILD)
    if not situation.options.provide or _all_allow(demands, release):
        return None
    major, minor = numbers(release)[:2]
    beyond = (f"{major}.{minor - 1}.999", f"{major}.{minor + 1}.0", "999")
    made = (
        build.version
        for build in situation.matrix.builds
        if build.platform == situation.platform and wheel_for(build, situation.abi)
    )
    if any(_all_allow(demands, version) for version in (*beyond, *made)):
        return None
    alike = [one for one in _named(demands) if numbers(one)[:2] == (major, minor)]
    return max(alike, key=newest_first, default=None)


def placeholder_version(release: str, situation: Situation) -> str:
    """Return the version of the placeholder beside onnxruntime-gpu `release`.

    Where what is required excludes `release` it is one that all of it allows, if there is any. One
    that is installed stays: a pin of a file that was named then is not seen in the environment.
    """
    demands = situation.environment.demanded(CPU_BUILD)
    installed = situation.package(CPU_BUILD)
    if installed is not None and installed.version.endswith(LABEL):
        of_release = f"{GPU_BUILD}=={release}" in installed.requires
        if of_release and _all_allow(demands, installed.version):
            return installed.version
    if _all_allow(demands, release):
        return release
    alike = nearest_pin(release, situation)
    pinned = alike or max(_named(demands), key=newest_first, default=None)
    return release if pinned is None else f"{pinned}{LABEL}"


def _named(demands: Iterable[Demand]) -> list[str]:
    """Return the versions that `demands` name and all of them allow, even with the label."""
    every = [*demands]
    named = {
        spec.version for demand in every for spec in demand.specifier if "*" not in spec.version
    }
    return [version for version in sorted(named) if _all_allow(every, f"{version}{LABEL}")]


def _all_allow(demands: Iterable[Demand], version: str) -> bool:
    return all(allows(demand.specifier, version) for demand in demands)
