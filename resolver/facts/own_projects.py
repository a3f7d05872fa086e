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
_Row = TypeVar("_Row", Installed, Package)


def without_tool_bounds(row: _Row) -> _Row:
    """Return a distribution that is the user's own sources without its bounds of onnxruntime.

    And our own loader without any.
    """
    if row.key == LOADER:
        return row._replace(requires=())
    if not row.local:
        return row
    return row._replace(requires=tuple(map(loosened, row.requires)))


def loosened(line: str) -> str:
    """Return a requirement of onnxruntime without its lower bound, and any other as it is.

    An exact version becomes its minor version: the nearest one with a GPU build serves it.
    """
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
    numbers = spec.version.split(".")
    if spec.operator == "~=":
        return f"=={'.'.join(numbers[:-1])}.*"
    if spec.operator in {"==", "==="} and "*" not in numbers:
        return f"=={'.'.join(numbers[:2])}.*"
    return str(spec)
