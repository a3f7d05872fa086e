"""What installed distributions would miss after a change, and did not miss before.

Requirements are judged as `pip check` judges them: no extras, markers of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..facts.model import CPU_BUILD, GPU_BUILD

PROVIDES = {GPU_BUILD: CPU_BUILD}
"""Whoever requires the second is served by the first: the modules are there under both names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledDistribution:
    """A distribution that is, or would be, there."""

    name: str
    """Canonical."""
    version: str
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetRequirement:
    """A requirement that nothing meets."""

    by: str
    """`fastembed 0.9.1`."""
    requirement: str
    """As the metadata spell it, without the marker."""
    found: str | None
    """The version that is there instead; None where there is none."""

    def __str__(self) -> str:
        """Return `fastembed 0.9.1: onnxruntime>=1.17 (1.16.3)`."""
        return f"{self.by}: {self.requirement}" + (f" ({self.found})" if self.found else "")


def environment_of(version: str, implementation: str) -> dict[str, str]:
    """Return the marker environment of a Python `version` on this machine."""
    environment = {name: str(value) for name, value in default_environment().items()}
    names = {"cpython": "CPython", "pypy": "PyPy"}
    environment |= {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "implementation_name": implementation,
        "implementation_version": version,
        "platform_python_implementation": names.get(implementation, implementation),
    }
    return environment


def unmet_requirements(
    distributions: Iterable[InstalledDistribution], environment: Mapping[str, str]
) -> tuple[UnmetRequirement, ...]:
    """Return every requirement of `distributions` that none of them meets, sorted.

    A requirement that cannot be read is nobody's conflict; neither is a version that is none.
    """
    there = {one.name: one for one in distributions}
    versions = {one.name: one.version for one in there.values()}
    for giver, given in PROVIDES.items():
        if giver in versions:
            versions.setdefault(given, versions[giver])
    found = [
        missing
        for one in there.values()
        for line in one.requires
        if (missing := _missing(one, line, versions, environment)) is not None
    ]
    return tuple(sorted(found, key=lambda one: (one.by, one.requirement)))


def new_conflicts(
    before: Iterable[InstalledDistribution],
    after: Iterable[InstalledDistribution],
    environment: Mapping[str, str],
) -> tuple[UnmetRequirement, ...]:
    """Return what would be unmet after a change and was not, of the same distribution, before."""
    known = {
        (one.by.split(" ")[0], one.requirement) for one in unmet_requirements(before, environment)
    }
    return tuple(
        one
        for one in unmet_requirements(after, environment)
        if (one.by.split(" ")[0], one.requirement) not in known
    )


def _missing(
    one: InstalledDistribution,
    line: str,
    versions: Mapping[str, str],
    environment: Mapping[str, str],
) -> UnmetRequirement | None:
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    marker = requirement.marker
    if marker is not None and not marker.evaluate({**environment, "extra": ""}):
        return None
    found = versions.get(canonicalize_name(requirement.name))
    if found is not None:
        try:
            if requirement.specifier.contains(Version(found), prereleases=True):
                return None
        except InvalidVersion:
            return None
    requirement.marker = None
    return UnmetRequirement(
        by=f"{one.name} {one.version}", requirement=str(requirement), found=found
    )
