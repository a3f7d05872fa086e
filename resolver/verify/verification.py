"""What real inference proved in an environment: the values that `verdict` makes.

Core.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..plan.reasons import Reason
from .records import chosen_json, to_json

SCHEMA = 1
VerificationVerdict = Literal[
    "works",
    "no-gpu",
    "no-driver",
    "driver-too-old",
    "library-missing",
    "cpu-fallback",
    "other-provider",
    "wrong-result",
    "crashed",
    "torch-conflict",
]
UP_TO_THE_DRIVER: frozenset[VerificationVerdict] = frozenset(
    {"no-gpu", "no-driver", "driver-too-old"}
)
"""The best possible without a usable GPU: every library was found."""
GPU = "CUDAExecutionProvider"
PLUGGED = "NvTensorRTRTXExecutionProvider"
"""The provider of NVIDIA's own plugin."""
TOLERANCE = 1e-3
"""A part of the largest expected number. The models' numbers are exact in TF32."""
HOST = re.compile(r" ?;? hostname=\S+")
"""What CUDA's errors say of the machine, and nobody needs."""
CUDA_FAILURE = re.compile(r"CUDA failure (\d+): ([^;\n]*[^;\s])")


class PlacedNode(NamedTuple):
    """An operator, and the provider that ran it."""

    op: str
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """One model: where its nodes ran, its deviation, its times in ms."""

    name: str
    gpu: str | None = None
    """`NVIDIA H200 (9.0)`; None where the driver offers none."""
    nodes: tuple[PlacedNode, ...] = ()
    """Each node that ran."""
    deviation: float | None = None
    """The largest difference from the expected output, as a part of its largest number."""
    correct: bool | None = None
    """None without an output."""
    create_ms: float | None = None
    first_ms: float | None = None
    second_ms: float | None = None
    """The second run at the same shape."""
    error: str | None = None

    def ran_on(self, wanted: str) -> bool:
        """Return whether every node but the copies ran on the provider `wanted`."""
        ran = [provider for op, provider in self.nodes if not op.startswith("Memcpy")]
        right = {GPU, PLUGGED} if wanted == GPU else {wanted}
        return bool(ran) and all(provider in right for provider in ran)

    @property
    def label(self) -> str:
        """Return the model and where it ran: `conv on NVIDIA H200 (9.0)`."""
        return f"{self.name} on {self.gpu}" if self.gpu else self.name

    def lines(self) -> list[str]:
        """Return the error, and the nodes with deviation and times, a line each."""
        lines = []
        if self.error:
            failure = CUDA_FAILURE.search(self.error)
            lines.append(f"{self.label}: {failure.group(0) if failure else self.error[:400]}")
        if self.nodes:
            nodes = ", ".join(f"{op} on {provider}" for op, provider in self.nodes)
            times = f"{self.first_ms} ms, then {self.second_ms} ms"
            lines.append(f"{self.label}: {nodes}; off by {self.deviation}; {times}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLibrary:
    """A CUDA library that the process had loaded."""

    name: str
    path: str
    version: str | None = None
    """Of the distribution that brought it, or as the file's full name has it; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRun:
    """torch on one GPU: the differences from the CPU, as parts of the largest number."""

    gpu: str | None
    product: float | None
    convolution: float | None
    error: str | None

    @property
    def correct(self) -> bool:
        """Return whether both results are correct."""
        results = (self.product, self.convolution)
        return self.error is None and all(
            result is not None and result <= TOLERANCE for result in results
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchResult:
    """What torch did in the process."""

    error: str | None
    """The error of its import."""
    unavailable: str | None
    """torch's own error where it cannot use a GPU."""
    runs: tuple[TorchRun, ...]

    @property
    def works(self) -> bool:
        """Return whether it computed the right numbers on every GPU."""
        return bool(self.runs) and all(run.correct for run in self.runs)

    def lines(self) -> list[str]:
        """Return the error, or the deviations on each GPU, a line each."""
        if self.error:
            return [f"torch cannot be imported: {self.error}"]
        if self.unavailable:
            return [f"torch uses no GPU: {self.unavailable}"]
        return [
            f"torch on {run.gpu}: "
            + (run.error or f"product off by {run.product}, convolution by {run.convolution}")
            for run in self.runs
        ]


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
            **chosen_json(self, "verdict", "plain", "models", "libraries", "helped"),
            "torch": self._torch_json(),
            **chosen_json(self, "notes", "evidence"),
        }

    def _torch_json(self) -> dict[str, object] | None:
        if self.build is None:
            return None
        orders = [
            {
                "imported": order,
                "verdict": None if order == "alone" else verification.verdict,
                **chosen_json(verification, "torch", "libraries"),
            }
            for order, verification in self.orders
        ]
        return {**to_json(self.build), "orders": orders}


def verification_exit_code(verification: Verification, *, elsewhere: bool = False) -> int:
    """Return 0 where inference works, else 6.

    `elsewhere`: the environment is for another machine; here it suffices that every library loads.
    """
    enough = elsewhere and verification.verdict in UP_TO_THE_DRIVER
    return 0 if enough or verification.verdict == "works" else 6
