"""The TensorRT of a build: what is installed, and what `--provider tensorrt` brings.

The major that a build's TensorRT provider links is read from its wheel. NVIDIA's own index has the
wheels of TensorRT. Nobody read them: which releases there are, and for whom, is documented.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..matrix.model import Build, Release
from ..matrix.tensorrt import (
    LIBRARIES_WHEEL,
    LOSE_CUDA,
    distribution_major,
    library_major,
    requirement,
)
from ..plan.model import TENSORRT_COSTS_CUDA
from ..plan.reasons import Fact, Finding, Named, finding
from ..versions import major
from .components import Component
from .situation import Situation


def tensorrt_for(build: Build, situation: Situation) -> Component | None:
    """Return the wheel of TensorRT's libraries for `build`, if the user wants TensorRT.

    None where the system has the library that the build links, or where no wheel is known.
    """
    wanted = library_major(build.tensorrt or "")
    if (
        situation.options.provider != "tensorrt"
        or wanted is None
        or is_of_system(wanted, situation)
    ):
        return None
    for row in situation.matrix.tensorrt:
        fits = (row.cuda, major(row.version)) == (major(build.cuda), wanted)
        if not fits or situation.platform not in row.platforms:
            continue
        package = situation.package(row.name)
        kept = package is not None and package.intact and major(package.version) == wanted
        return Component(
            release=Release(
                name=row.name,
                version=package.version if package and kept else row.version,
                platform=situation.platform,
                python=None,
                glibc=row.glibc,
                size=0,
                sha256="",
                file="",
                index_url=situation.options.tensorrt_index.rstrip("/"),
            ),
            installed=kept,
        )
    return None


def displaced_by(component: Component | None, situation: Situation) -> set[str]:
    """Return the installed distributions that own the same folder as the wheel of `component`."""
    if component is None:
        return set()
    names = {
        package.name
        for package in situation.facts.packages
        if LIBRARIES_WHEEL.fullmatch(package.name)
    }
    return names - {component.release.name}


def tensorrt_findings(
    situation: Situation, build: Build, component: Component | None = None
) -> Iterator[Finding]:
    """Say that none of the installed TensorRTs is the one that `build` links.

    `component` is the wheel that the plan has; what it brings, the plan fixes.
    """
    wanted, facts = library_major(build.tensorrt or ""), situation.facts
    installed: list[tuple[Fact, str]] = [
        (Named(package.name, package.version), found)
        for package in facts.packages
        if (found := distribution_major(package.name, package.version))
    ]
    installed += [
        (library.path or library.name, found)
        for library in facts.libraries
        if (found := library_major(library.name))
    ]
    if component is not None and not component.installed:
        yield finding(
            "tensorrt-missing",
            "error",
            version=build.version,
            library=str(build.tensorrt),
            wheel=f"{component.release.name} {component.release.version}",
            index=component.release.index_url,
        )
        return
    if wanted is None or not installed or wanted in {found for _, found in installed}:
        return
    loses = LOSE_CUDA.contains(build.version)
    yield finding(
        TENSORRT_COSTS_CUDA if loses else "tensorrt-unfit",
        "error" if loses else "warning",
        installed=tuple(name for name, _ in installed),
        version=build.version,
        library=str(build.tensorrt),
        major=wanted,
        requirement=str(requirement(build)),
    )


def is_of_system(wanted: str, situation: Situation) -> bool:
    """Return whether the loader finds TensorRT of the major `wanted` outside the wheels."""
    return any(library_major(library.name) == wanted for library in situation.facts.libraries)
