"""The Visual C++ runtime on Windows: that of the system if new enough, else that of a wheel.

The runtime must be at least as new as the build tools of everything that uses it; older ones do
crash. The matrix has the build tools of a release: the linker version in the provider's header.
Sources: https://learn.microsoft.com/cpp/porting/binary-compat-2015-2017 ("Restrictions on binary
compatibility"), https://github.com/onnx/onnx/issues/6267 (a crash below 14.38).

Only `msvcp140.dll` counts: Python has its own vcruntime140.dll, and has loaded it already.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.model import LIBRARIES_SEARCHED, Library
from ..matrix.model import MSVC_RUNTIME, Build
from ..plan.reasons import Finding, Reason, finding, reason
from ..versions import newest_first, numbers
from .components import Component
from .situation import Situation

LIBRARY = "msvcp140.dll"


def runtime_for(build: Build, situation: Situation) -> Component | None:
    """Return the wheel of the runtime for `build`; None if none is needed or none serves."""
    if build.toolset is None:
        return None
    releases = [
        release for release in situation.matrix.msvc if release.platform == situation.platform
    ]
    releases = [release for release in releases if _suffices(release.version, build.toolset)]
    installed = situation.package(MSVC_RUNTIME)
    for release in releases:
        if installed and installed.intact and release.version == installed.version:
            return Component(release=release, installed=True)
    fitting = [release for release in releases if release.python == situation.abi]
    if not fitting or _lack(build, situation) is None:
        return None
    newest = max(fitting, key=lambda release: newest_first(release.version))
    return Component(release=newest, installed=False)


def is_unfit(build: Build, situation: Situation) -> bool:
    """Return whether the system's runtime is known to be too old, or not to be there."""
    return _lack(build, situation) in {"old", "absent"}


def msvc_findings(
    build: Build, runtime: Component | None, situation: Situation
) -> Iterator[Finding]:
    """Say what is wrong with the system's runtime, where no wheel that is installed makes up."""
    if (runtime and runtime.installed) or not is_unfit(build, situation):
        return
    system = _system(situation)
    values = {"needs": str(build.toolset), "release": build.version}
    if system:
        values |= {"version": str(system.version), "path": system.path or LIBRARY}
    kind = "old" if system else "absent"
    if runtime:
        wheel = f"{MSVC_RUNTIME} {runtime.release.version}"
        yield finding(f"msvc-{kind}", "error", **values, wheel=wheel)
    else:
        yield finding(f"msvc-{kind}-by-hand", "warning", **values, python=situation.abi)


def why_msvc_runtime(
    build: Build, runtime: Component | None, situation: Situation
) -> Iterator[Reason]:
    """Say why the runtime is installed where the system's is not known to be too old."""
    if runtime and not runtime.installed and _lack(build, situation) == "unknown":
        yield reason("why-msvc", needs=str(build.toolset), wheel=runtime.release.version)


def _lack(build: Build, situation: Situation) -> str | None:
    """Return `old`, `absent` or `unknown`; None if the system's runtime is new enough.

    A library of the system whose version is not known counts as new enough, as does any where the
    build tools of `build` are not known.
    """
    if build.toolset is None:
        return None
    system = _system(situation)
    if system is None:
        return "absent" if LIBRARIES_SEARCHED in situation.facts.sources else "unknown"
    return "old" if system.version and not _suffices(system.version, build.toolset) else None


def _suffices(version: str, toolset: str) -> bool:
    """Return whether a runtime (`14.42.34433`) is as new as build tools (`14.40`)."""
    return numbers(version) >= numbers(toolset)


def _system(situation: Situation) -> Library | None:
    return next(
        (library for library in situation.facts.libraries if library.name.lower() == LIBRARY), None
    )
