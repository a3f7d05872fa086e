"""What a torch that comes requires besides the plan, by the metadata of its own wheel.

The plan has what concerns onnxruntime too, at exact versions; the rest (nccl, triton, sympy)
only the wheel knows. In come the plan, the environment and what is in the wheels; out come the
requirements that nothing meets yet, and the environment that they are resolved within.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.target import Installed, Target
from ..matrix.torch import COMPANIONS, TORCH
from ..plan.model import Plan
from ..plan.wheels import Wheel
from .conflicts import InstalledDistribution, environment_of, unmet_requirements
from .wheel_contents import WheelContents

FAMILY = frozenset({TORCH, *COMPANIONS})
"""Whose own requirements the plan leaves to their metadata."""
_LIKE_TORCH = ("nvidia-", "cuda-", "triton", "pytorch-triton")
"""What comes and goes with a torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRequirement:
    """A requirement that neither the plan nor the environment meets."""

    by: str
    """The canonical name of who requires it."""
    requirement: Requirement
    """Its marker was judged, and is gone."""


def incoming_torch(plan: Plan) -> bool:
    """Tell whether a torch, or a companion of it, comes with `plan`."""
    return any(wheel.name in FAMILY for wheel in plan.install)


def distributions_afterwards(
    plan: Plan, target: Target, coming: Mapping[Wheel, WheelContents | None]
) -> Target:
    """Return `target` as it is once `plan` is done and the wheels `coming` are installed.

    Contents that are not known yet are taken to require nothing.
    """
    arriving = {wheel.name for wheel in coming}
    gone = arriving | set(plan.uninstall)
    staying = tuple(one for one in target.installed if one.key not in gone)
    new = tuple(
        Installed(
            name=wheel.name,
            version=wheel.version,
            metadata_path="",
            requires=() if inside is None else inside.requires,
        )
        for wheel, inside in coming.items()
    )
    return target._replace(installed=staying + new)


def torch_requirements(
    plan: Plan, then: Target, names: Sequence[str]
) -> tuple[TorchRequirement, ...]:
    """Return what the distributions `names` of the environment `then` require and nothing meets.

    Raises Error `torch-contradicts-plan` where one of them forbids what the plan has: its metadata
    are not those that the matrix knows.
    """
    environment = environment_of(then.version, then.implementation)
    there = [
        InstalledDistribution(
            name=one.key, version=one.version, requires=one.requires if one.key in names else ()
        )
        for one in then.installed
    ]
    planned = {wheel.name: wheel.version for wheel in (*plan.selection, *plan.install)}
    found = []
    for missing in unmet_requirements(there, environment):
        requirement = Requirement(missing.requirement)
        name = canonicalize_name(requirement.name)
        if name in planned:
            raise Error(
                "torch-contradicts-plan",
                by=missing.by,
                requires=missing.requirement,
                planned=f"{name} {planned[name]}",
            )
        found.append(TorchRequirement(by=missing.by.partition(" ")[0], requirement=requirement))
    return tuple(found)


def movable_distributions(plan: Plan, target: Target) -> frozenset[str]:
    """Return which distributions another torch may bring in another version, by canonical name.

    Those of NVIDIA's, and Triton, that the plan does not hold: they came with the torch before it.
    """
    planned = {wheel.name for wheel in (*plan.selection, *plan.install)}
    there = {one.key for one in target.installed} - planned
    return frozenset(name for name in there if name.startswith(_LIKE_TORCH))
