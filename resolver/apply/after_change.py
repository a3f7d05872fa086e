"""What an environment has after a change, and what may move with a new torch.

The plan has what onnxruntime requires, at exact versions; what torch requires besides (nccl,
triton, sympy) is in its wheel only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..facts.target import Installed, Target
from ..plan.model import Plan
from ..plan.wheels import TORCH_FAMILY, Wheel

_LIKE_TORCH = ("nvidia-", "cuda-", "triton", "pytorch-triton")
"""Distributions that belong to a torch."""


def incoming_torch(plan: Plan) -> bool:
    """Return whether `plan` installs torch or a domain library of it."""
    return any(wheel.name in TORCH_FAMILY for wheel in plan.install)


def incoming_distributions(coming: Mapping[Wheel, Sequence[str]]) -> tuple[Installed, ...]:
    """Return what the wheels `coming` are once they are installed: with their `Requires-Dist`."""
    return tuple(
        Installed(
            name=wheel.name, version=wheel.version, metadata_path="", requires=tuple(requires)
        )
        for wheel, requires in coming.items()
    )


def movable_distributions(plan: Plan, target: Target) -> frozenset[str]:
    """Return the canonical names of distributions that belonged to the torch before.

    Those of NVIDIA and Triton that `plan` does not have: another torch may need other versions.
    """
    planned = {wheel.name for wheel in (*plan.selection, *plan.install)}
    names = {installed.key for installed in target.installed} - planned
    return frozenset(name for name in names if name.startswith(_LIKE_TORCH))
