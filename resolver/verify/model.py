"""What real inference proved in an environment: the values that `verdict` makes."""

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
"""The best possible without a usable GPU: every library was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTorch:
    """A torch for CUDA."""

    version: str
    cuda: str
    """`12.8`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was proven, and the evidence."""

    verdict: VerificationVerdict
    values: tuple[tuple[str, str], ...] = ()
    """The placeholders of the verdict's text."""
    notes: tuple[Reason, ...] = ()
    """Additions to the verdict, from the same table of texts."""
    evidence: tuple[str, ...] = ()
    """Observations in the order of the steps."""
    models: tuple[ModelRun, ...] = ()
    libraries: tuple[LoadedLibrary, ...] = ()
    helped: tuple[str, ...] = ()
    """Libraries that neither the loader nor `preload_dlls()` found, loaded from the wheels."""
    plain: bool = False
    """True where the check loaded no libraries itself, as an unchanged application."""
    build: CheckedTorch | None = None
    """The torch for CUDA in the environment."""
    torch: TorchResult | None = None
    """What torch did in this process; None where it was not used."""
    orders: tuple[tuple[str, Verification], ...] = ()
    """The verifications with torch in the process: imported `first`, `last`; and torch `alone`."""

    def to_json(self) -> dict[str, object]:
        """Return the document that `verify --json` prints."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "plain": self.plain,
            "models": [
                {**asdict(run), "nodes": [{"op": op, "provider": name} for op, name in run.nodes]}
                for run in self.models
            ],
            "libraries": [asdict(library) for library in self.libraries],
            "helped": list(self.helped),
            "torch": self._torch_json(),
            "notes": [{"code": note.code, "values": dict(note.values)} for note in self.notes],
            "evidence": list(self.evidence),
        }

    def _torch_json(self) -> dict[str, object] | None:
        if self.build is None:
            return None
        orders = [
            {
                "imported": order,
                "verdict": None if order == "alone" else verification.verdict,
                "torch": asdict(verification.torch) if verification.torch else None,
                "libraries": [asdict(library) for library in verification.libraries],
            }
            for order, verification in self.orders
        ]
        return {**asdict(self.build), "orders": orders}


def verification_exit_code(verification: Verification, *, elsewhere: bool = False) -> int:
    """Return 0 where inference works, else 6.

    `elsewhere`: the environment is for another machine; here it suffices that every library loads.
    """
    enough = elsewhere and verification.verdict in UP_TO_THE_DRIVER
    return 0 if enough or verification.verdict == "works" else 6
