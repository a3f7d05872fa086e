"""The user's own projects in an environment, and their bounds of onnxruntime.

`uv add`, `poetry add` and `pdm add` write the newest version that they find as a lower bound, and
many releases of onnxruntime are for the CPU alone. Such a bound is no wish: it is one of the lines
that a fix of the project changes.
"""

from __future__ import annotations

from typing import TypeVar

from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..versions import requirement
from .model import CPU_BUILD, GPU_BUILD, Package
from .target import Installed

LOADER = "ortgpu-fix-libraries"
"""Our own wheel. That of a project requires the very versions of a plan, and moves with it."""
BUILDS = frozenset({GPU_BUILD, CPU_BUILD})
_LOWER = frozenset({">=", ">"})
_Distribution = TypeVar("_Distribution", Installed, Package)


def is_own(distribution: Installed | Package) -> bool:
    """Return whether a distribution is the user's own sources: a directory of that machine."""
    return distribution.local or distribution.removal_blocker == "editable"


def without_tool_bounds(distribution: _Distribution) -> _Distribution:
    """Return a distribution that is the user's own sources without its bounds of onnxruntime.

    And our own loader without any.
    """
    requires: tuple[str, ...] = ()
    if distribution.key != LOADER:
        requires = (
            tuple(map(loosened, distribution.requires))
            if is_own(distribution)
            else distribution.requires
        )
    return (
        distribution
        if requires == distribution.requires
        else distribution._replace(requires=requires)
    )


def loosened(line: str) -> str:
    """Return a requirement of onnxruntime without its lower bound, and any other unchanged."""
    wanted = requirement(line)
    if wanted is None or canonicalize_name(wanted.name) not in BUILDS:
        return line
    kept = [text for spec in wanted.specifier if (text := _loosened(spec))]
    if kept == [str(spec) for spec in wanted.specifier]:
        return line
    changed = Requirement(line)
    changed.specifier = SpecifierSet(",".join(sorted(kept)))
    return str(changed)


def _loosened(spec: Specifier) -> str:
    if spec.operator in _LOWER:
        return ""
    if spec.operator == "~=":
        return f"=={spec.version.rpartition('.')[0]}.*"
    return str(spec)
