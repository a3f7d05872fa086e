"""Requirements that a change would leave unmet: conflicts of what stays, and needs of a new torch.

They are evaluated as `pip check` does: without extras, with the markers of the target. The plan has
what onnxruntime requires, at exact versions; what torch requires besides (nccl, triton, sympy) is
in its wheel only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.markers import is_in_force, target_markers
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..facts.target import Installed, Target
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..plan.model import Plan
from ..plan.wheels import Wheel
from ..versions import requirement as parse_requirement
from ..versions import version as parse_version

FAMILY = frozenset({TORCH, *DOMAIN_LIBRARIES})
"""Distributions whose requirements are not in the plan."""
_LIKE_TORCH = ("nvidia-", "cuda-", "triton", "pytorch-triton")
"""Distributions that belong to a torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetRequirement:
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
    distributions: Iterable[Installed], environment: Mapping[str, str]
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
    before: Iterable[Installed], after: Iterable[Installed], environment: Mapping[str, str]
) -> tuple[UnmetRequirement, ...]:
    """Return what is unmet `after` a change and was not, of the same distribution, `before`."""
    known = {(one.by, str(one.requirement)) for one in unmet_requirements(before, environment)}
    return tuple(
        one
        for one in unmet_requirements(after, environment)
        if (one.by, str(one.requirement)) not in known
    )


def incoming_torch(plan: Plan) -> bool:
    """Return whether `plan` installs torch or a domain library of it."""
    return any(wheel.name in FAMILY for wheel in plan.install)


def distributions_afterwards(
    plan: Plan, target: Target, coming: Mapping[Wheel, Sequence[str] | None]
) -> Target:
    """Return `target` after `plan` is done and the wheels `coming` are installed.

    Each has its `Requires-Dist` lines; where they are None it is taken to require nothing.
    """
    gone = {*plan.uninstall, *(wheel.name for wheel in coming)}
    staying = [installed for installed in target.installed if installed.key not in gone]
    new = [
        Installed(
            name=wheel.name,
            version=wheel.version,
            metadata_path="",
            requires=tuple(requires or ()),
        )
        for wheel, requires in coming.items()
    ]
    return target._replace(installed=(*staying, *new))


def torch_requirements(
    plan: Plan, then: Target, names: Sequence[str]
) -> tuple[UnmetRequirement, ...]:
    """Return what the distributions `names` of the environment `then` require and nothing meets.

    Raises Error `torch-contradicts-plan` where one of them forbids a version of the plan: then the
    metadata are not those that the matrix knows.
    """
    environment = target_markers(then)
    distributions = [
        installed if installed.key in names else installed._replace(requires=())
        for installed in then.installed
    ]
    planned = _planned(plan)
    unmet = unmet_requirements(distributions, environment)
    for missing in unmet:
        name = canonicalize_name(missing.requirement.name)
        if name in planned:
            raise Error(
                "torch-contradicts-plan",
                by=f"{missing.by} {missing.version}",
                requires=str(missing.requirement),
                planned=f"{name} {planned[name]}",
            )
    return unmet


def movable_distributions(plan: Plan, target: Target) -> frozenset[str]:
    """Return the canonical names of distributions that belonged to the torch before.

    Those of NVIDIA and Triton that `plan` does not have: another torch may need other versions.
    """
    names = {installed.key for installed in target.installed} - set(_planned(plan))
    return frozenset(name for name in names if name.startswith(_LIKE_TORCH))


def _planned(plan: Plan) -> dict[str, str]:
    return {wheel.name: wheel.version for wheel in (*plan.selection, *plan.install)}
