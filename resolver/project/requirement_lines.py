"""What becomes of a line that requires onnxruntime, in whatever file it stands."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES
from ..facts.markers import is_in_force
from ..facts.model import CPU_BUILD
from ..facts.own_projects import BUILDS, loosened
from ..versions import allows, requirement
from .model import FOLDER, Wanted

IN_PROJECT = f"file:///${{PROJECT_ROOT}}/{FOLDER}/"
"""How PDM names the directory of our wheels, wherever the project lies."""


def named_build(line: str, wanted: Wanted) -> str | None:
    """Return the build of onnxruntime, or the loader, that a line requires on the target; or None.

    One that names an address is its owner's business, but for our own.
    """
    found = requirement(line)
    if found is None or not is_in_force(found, wanted.markers, ""):
        return None
    if found.url and not found.url.startswith(IN_PROJECT):
        return None
    name = canonicalize_name(found.name)
    return name if name in {*BUILDS, LIBRARIES} else None


def serves(line: str, wanted: Wanted) -> bool:
    """Return whether what a project gets is what the `line` of a build of onnxruntime asks for."""
    found = Requirement(line)
    of_cpu = canonicalize_name(found.name) == CPU_BUILD
    return allows(found.specifier, wanted.placeholder.version if of_cpu else wanted.release)


def with_served_bound(line: str, wanted: Wanted) -> str:
    """Return the line of a build without the bounds that do not let the planned version in."""
    for text in (line, loosened(line)):
        if serves(text, wanted):
            return text
    found = Requirement(line)
    found.specifier = SpecifierSet()
    return str(found)
