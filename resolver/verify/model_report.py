"""A model, where it ran and whether its numbers are right, as values.

Core. `model_run` makes them, `report` says them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from ..plan.reasons import Reason
from .measurement import Shapes, Tensor
from .model import Verification, VerificationVerdict
from .smoke_result import LoadedLibrary

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
    """None: what comes out is random, so that nothing can be said."""
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """A model, where it ran and whether its numbers are right."""

    file: str
    verdict: VerificationVerdict
    values: tuple[tuple[str, str], ...] = ()
    notes: tuple[Reason, ...] = ()
    evidence: tuple[str, ...] = ()
    gpu: str | None = None
    release: str | None = None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    given: bool = False
    shares: tuple[ProviderShare, ...] = ()
    """Of the run on the GPU, or on the CPU where there is no other."""
    fallbacks: tuple[Fallback, ...] = ()
    copies: Copies | None = None
    checked: tuple[Checked, ...] = ()
    memory_bytes: int | None = None
    create_ms: tuple[tuple[str, float], ...] = ()
    first_ms: tuple[tuple[str, float], ...] = ()
    second_ms: tuple[tuple[str, float], ...] = ()
    """By configuration, with the first shape."""
    half: bool = False
    """The model computes in float16."""
    operators: tuple[tuple[str, int], ...] = ()
    """How many nodes of each operator ran, most first."""
    libraries: tuple[LoadedLibrary, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return what `verify MODEL --json` has under `model`."""
        return {
            "file": self.file,
            "verdict": self.verdict,
            "gpu": self.gpu,
            "onnxruntime": self.release,
            "inputs": [asdict(row) for row in self.inputs],
            "outputs": [asdict(row) for row in self.outputs],
            "shapes": [{name: list(sizes) for name, sizes in shapes} for shapes in self.shapes],
            "shapes_given": self.given,
            "float16": self.half,
            "providers": [asdict(row) for row in self.shares],
            "operators": dict(self.operators),
            "fallbacks": [asdict(row) for row in self.fallbacks],
            "copies": asdict(self.copies) if self.copies else None,
            "checked": [asdict(row) for row in self.checked],
            "gpu_memory_bytes": self.memory_bytes,
            "create_ms": dict(self.create_ms),
            "first_ms": dict(self.first_ms),
            "second_ms": dict(self.second_ms),
            "notes": [{"code": note.code, "values": dict(note.values)} for note in self.notes],
            "evidence": list(self.evidence),
        }


def without_run(verification: Verification, file: str) -> ModelReport:
    """Return the report of a model that was not run, for no model can be: what keeps it is said."""
    return ModelReport(
        file=file,
        verdict=verification.verdict,
        values=verification.values,
        notes=verification.notes,
        evidence=verification.evidence,
    )
