"""The environment of PEP 508 markers on a machine, and which requirements apply there."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement

from .model import Facts
from .target import Target

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}


def marker_environment(facts: Facts) -> dict[str, str]:
    """Return the environment of PEP 508 markers for the target of `facts`."""
    return _environment(
        facts.python.version,
        facts.python.implementation,
        facts.platform.machine,
        windows=facts.platform.system == "windows",
    )


def target_markers(target: Target) -> dict[str, str]:
    """Return the environment of PEP 508 markers for `target`, as `marker_environment` does."""
    return _environment(
        target.version,
        target.implementation,
        target.machine or target.platform.rpartition("-")[2],
        windows=target.platform.startswith("win"),
    )


def _environment(
    version: str, implementation: str, machine: str, *, windows: bool
) -> dict[str, str]:
    return {
        "implementation_name": implementation,
        "implementation_version": version,
        "os_name": "nt" if windows else "posix",
        "platform_machine": "AMD64" if windows and machine == "x86_64" else machine,
        "platform_python_implementation": _IMPLEMENTATIONS.get(implementation, implementation),
        "platform_release": "",
        "platform_system": "Windows" if windows else "Linux",
        "platform_version": "",
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": "win32" if windows else "linux",
        "extra": "",
    }


def is_in_force(requirement: Requirement, markers: Mapping[str, str], extra: str) -> bool:
    """Return whether the marker of `requirement` holds in `markers` with `extra` (empty: none)."""
    return requirement.marker is None or marker_holds(str(requirement.marker), markers, extra)


def marker_holds(marker: str, markers: Mapping[str, str], extra: str = "") -> bool:
    """Return whether `marker`, a valid one, holds in `markers` with `extra` (empty: none).

    One that compares what cannot be compared (`os_name ~= "x"`) is not.
    """
    return _holds(marker, tuple(markers.items()), extra)


@functools.lru_cache(maxsize=4096)  # hundreds of distributions write the same few
def _holds(marker: str, environment: tuple[tuple[str, str], ...], extra: str) -> bool:
    try:
        return Marker(marker).evaluate({**dict(environment), "extra": extra})
    except (KeyError, UndefinedComparison, UndefinedEnvironmentName):
        return False  # KeyError: `extras`, a name of lock files, with packaging before 26.3


def extras_named(text: str) -> list[str]:
    """Return the extras that a requirement, or its marker, compares with: `extra == "gpu"`."""
    return _EXTRA.findall(text)
