"""What was proven in an environment.

Only values; `verdict` and `torch_verdict` make them, `report_checks` says them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from ..plan.reasons import Reason
from .smoke_result import LoadedLibrary, ModelRun, TorchResult

SCHEMA = 1
VerificationVerdict = Literal[
    "works",
    "no-gpu",
    "no-driver",
    "driver-too-old",
    "library-missing",
    "cpu-fallback",
    "wrong-result",
    "crashed",
    "torch-conflict",
]
UP_TO_THE_DRIVER: frozenset[VerificationVerdict] = frozenset(
    {"no-gpu", "no-driver", "driver-too-old"}
)
"""The best that a machine without a GPU can answer: every library was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTorch:
    """A torch for CUDA."""

    version: str
    cuda: str
    """`12.8`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was proven, with everything that it rests on."""

    verdict: VerificationVerdict
    values: tuple[tuple[str, str], ...] = ()
    """The placeholders of the verdict's text."""
    notes: tuple[Reason, ...] = ()
    """What a reader should know beside the verdict; the same table of texts."""
    evidence: tuple[str, ...] = ()
    """What was seen, in the order of the steps: facts, not texts."""
    models: tuple[ModelRun, ...] = ()
    libraries: tuple[LoadedLibrary, ...] = ()
    helped: tuple[str, ...] = ()
    """Libraries that neither the loader nor `preload_dlls()` found, loaded from the wheels."""
    plain: bool = False
    """True where the check had no help: it saw what an unchanged application sees."""
    build: CheckedTorch | None = None
    """The torch for CUDA that is in the environment too."""
    torch: TorchResult | None = None
    """What torch did in this process; None where it was not asked to."""
    orders: tuple[tuple[str, Verification], ...] = ()
    """What was seen with torch in the process: imported `first`, `last`; and torch `alone`."""

    def to_json(self) -> dict[str, object]:
        """Return the document that `verify --json` prints."""
        models = []
        for run in self.models:
            nodes = [{"op": op, "provider": provider} for op, provider in run.nodes]
            models.append({**asdict(run), "nodes": nodes})
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "plain": self.plain,
            "models": models,
            "libraries": [asdict(library) for library in self.libraries],
            "helped": list(self.helped),
            "torch": self._torch_json(),
            "notes": [{"code": note.code, "values": dict(note.values)} for note in self.notes],
            "evidence": list(self.evidence),
        }

    def _torch_json(self) -> dict[str, object] | None:
        if self.build is None:
            return None
        orders = []
        for order, seen in self.orders:
            libraries = [asdict(library) for library in seen.libraries]
            torch = asdict(seen.torch) if seen.torch else None
            verdict = None if order == "alone" else seen.verdict
            row = {"imported": order, "verdict": verdict, "torch": torch, "libraries": libraries}
            orders.append(row)
        return {**asdict(self.build), "orders": orders}


def verification_exit_code(verification: Verification, *, elsewhere: bool = False) -> int:
    """Return 0 for what is proven as far as it can be here, else 6.

    `elsewhere`: the environment is meant for another machine; on this one it is enough that every
    library was found.
    """
    enough = elsewhere and verification.verdict in UP_TO_THE_DRIVER
    return 0 if enough or verification.verdict == "works" else 6
