"""The environment of PEP 508 markers on a machine, and which requirements apply there."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement

from .model import Facts


def marker_environment(facts: Facts) -> dict[str, str]:
    """Return the environment of PEP 508 markers for the target of `facts`."""
    windows = facts.platform.system == "windows"
    machine = facts.platform.machine
    version, implementation = facts.python.version, facts.python.implementation
    return {
        "implementation_name": implementation,
        "implementation_version": version,
        "os_name": "nt" if windows else "posix",
        "platform_machine": "AMD64" if windows and machine == "x86_64" else machine,
        "platform_python_implementation": "CPython" if implementation == "cpython" else "PyPy",
        "platform_release": "",
        "platform_system": "Windows" if windows else "Linux",
        "platform_version": "",
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": "win32" if windows else "linux",
        "extra": "",
    }


def is_in_force(requirement: Requirement, markers: Mapping[str, str], extra: str) -> bool:
    """Tell whether the marker of `requirement` is true in `markers` with `extra` (empty: none).

    One that compares what cannot be compared (`os_name ~= "x"`) is not.
    """
    if requirement.marker is None:
        return True
    return _holds(str(requirement.marker), tuple(markers.items()), extra)


@functools.lru_cache(maxsize=4096)  # hundreds of distributions write the same few
def _holds(marker: str, environment: tuple[tuple[str, str], ...], extra: str) -> bool:
    try:
        return Marker(marker).evaluate({**dict(environment), "extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False
