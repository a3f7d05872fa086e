"""Requirements of installed distributions that nothing meets.

They are evaluated as `pip check` does: without extras, with the markers of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..versions import requirement as parse_requirement
from ..versions import version as parse_version
from .markers import is_in_force
from .model import CPU_BUILD, GPU_BUILD, Package
from .target import Installed


class UnmetRequirement(NamedTuple):
    """A requirement that no distribution meets."""

    by: str
    """The canonical name of the distribution that requires it."""
    version: str
    """Its version."""
    requirement: Requirement
    """Without the marker, which is true."""
    found: str | None
    """The version that is installed instead; None where there is none."""

    def __str__(self) -> str:
        """Return `fastembed 0.9.1: onnxruntime>=1.17 (1.16.3)`."""
        return f"{self.by} {self.version}: {self.requirement}" + (
            f" ({self.found})" if self.found else ""
        )


def unmet_requirements(
    distributions: Iterable[Installed | Package], environment: Mapping[str, str]
) -> tuple[UnmetRequirement, ...]:
    """Return every requirement of `distributions` that none of them meets, sorted.

    Of two with one name the first counts. A requirement that is not PEP 508 is passed over, and a
    version that is not PEP 440 meets everything. The GPU build meets what the CPU build meets: both
    have the same modules.
    """
    first = {distribution.key: distribution for distribution in reversed([*distributions])}
    versions = {name: distribution.version for name, distribution in first.items()}
    if GPU_BUILD in versions:
        versions.setdefault(CPU_BUILD, versions[GPU_BUILD])
    unmet = []
    for name, distribution in first.items():
        for line in distribution.requires:
            wanted = parse_requirement(line)
            if wanted is None or not is_in_force(wanted, environment, ""):
                continue
            version = versions.get(canonicalize_name(wanted.name))
            number = parse_version(version or "")
            if version is None or (
                number is not None and not wanted.specifier.contains(number, prereleases=True)
            ):
                bare = Requirement(line)
                bare.marker = None
                unmet.append(
                    UnmetRequirement(
                        by=name, version=distribution.version, requirement=bare, found=version
                    )
                )
    return tuple(sorted(unmet, key=lambda one: (f"{one.by} {one.version}", str(one.requirement))))


def new_conflicts(
    before: Iterable[Installed | Package],
    after: Iterable[Installed | Package],
    environment: Mapping[str, str],
) -> tuple[UnmetRequirement, ...]:
    """Return what is unmet `after` a change and was not, of the same distribution, `before`."""
    known = {(one.by, str(one.requirement)) for one in unmet_requirements(before, environment)}
    return tuple(
        one
        for one in unmet_requirements(after, environment)
        if (one.by, str(one.requirement)) not in known
    )
