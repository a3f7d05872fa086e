"""A model, where it ran and whether its numbers are correct, as values.

Core. `model_verdict` makes them, `report` says them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...plan.reasons import Reason
from ...verify.records import chosen_json, to_json
from ...verify.verification import Verification, VerificationVerdict
from .measurement import Shapes, Tensor

Why = Literal["no-kernel", "shape-work", "optimizer", "unknown"]
FREE: frozenset[Why] = frozenset({"shape-work", "optimizer"})
"""Reasons that are as onnxruntime wants it: they cost next to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A node that ran on the CPU although the session asked for the GPU."""

    name: str
    op: str
    why: Why
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderShare:
    """What one provider ran."""

    provider: str
    nodes: int
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Copies between the devices in one run."""

    to_device: int = 0
    to_device_bytes: int = 0
    to_host: int = 0
    to_host_bytes: int = 0
    input_bytes: int = 0
    """What goes in and comes out besides, because the application has it on the CPU."""
    output_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An output, compared with the CPU's."""

    name: str
    type: str
    shape: int
    """Which of the shapes, from 0."""
    deviation: float | None
    tolerance: float
    right: bool | None
    """None: what comes out is random, or has no numbers, so that nothing can be said."""
    problem: str | None


DOCUMENT = (
    *("file", "verdict", "gpu", "onnxruntime", "inputs", "outputs", "shapes", "shapes_given"),
    *("float16", "providers", "operators", "fallbacks", "copies", "checked", "gpu_memory_bytes"),
    *("create_ms", "first_ms", "second_ms", "notes", "evidence"),
)
"""What of a report is in the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """A model, where it ran and whether its numbers are correct."""

    file: str
    verdict: VerificationVerdict
    values: tuple[tuple[str, str], ...] = ()
    notes: tuple[Reason, ...] = ()
    evidence: tuple[str, ...] = ()
    of_environment: bool = False
    """The verdict is that of the small models, which did not work on the GPU."""
    gpu: str | None = None
    onnxruntime: str | None = None
    """Its release."""
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    shapes_given: bool = False
    float16: bool = False
    """The model computes in it."""
    providers: tuple[ProviderShare, ...] = ()
    """Of the run on the GPU, or on the CPU where there is no other."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """How many nodes of each operator ran, most first."""
    fallbacks: tuple[Fallback, ...] = ()
    copies: Copies | None = None
    checked: tuple[Checked, ...] = ()
    gpu_memory_bytes: int | None = None
    create_ms: Mapping[str, float] = field(default_factory=dict)
    first_ms: Mapping[str, float] = field(default_factory=dict)
    second_ms: Mapping[str, float] = field(default_factory=dict)
    """By configuration, with the first shape."""

    def to_json(self) -> dict[str, object]:
        """Return what `verify MODEL --json` has under `model`."""
        return chosen_json(self, *DOCUMENT) | {
            "shapes": to_json([dict(each) for each in self.shapes])
        }


def without_run(verification: Verification, file: str) -> ModelReport:
    """Return the report of a model that was not run, for no model can be: what keeps it is said."""
    return ModelReport(
        file=file,
        verdict=verification.verdict,
        of_environment=True,
        values=verification.values,
        notes=verification.notes,
        evidence=verification.evidence,
    )
