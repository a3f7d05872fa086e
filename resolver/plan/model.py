"""The plan as values: what is wrong, which wheels work here, and what to install and uninstall."""

from typing import Literal, NamedTuple

from ..facts.model import GPU_BUILD
from ..matrix.model import AddedRows
from .reasons import Consumer, Finding, Reason
from .wheels import Companion, Wheel

SHADOWED = "onnxruntime-shadowed"
COMMAND_ELSEWHERE = "command-elsewhere"
BY_USER = frozenset({SHADOWED, COMMAND_ELSEWHERE})
"""The findings that no change of the environment mends."""
PlanVerdict = Literal["healthy", "fixable", "impossible"]


class Rejected(NamedTuple):
    """A release that does not work here."""

    package: str
    version: str
    reasons: tuple[Reason, ...]


class Unlock(NamedTuple):
    """One change that would allow a newer release."""

    change: Reason
    gains: str
    """`onnxruntime-gpu 1.31.1`."""


class Plan(NamedTuple):
    """The plan for one machine. Made by `resolve`."""

    verdict: PlanVerdict
    matrix_date: str
    matrix_digest: str
    """`sha256:…` over the matrix that the plan was made with."""
    findings: tuple[Finding, ...] = ()
    why: tuple[Reason, ...] = ()
    """Why the selection works."""
    cuda: str | None = None
    """The CUDA major of the selection; None where nothing works."""
    selection: tuple[Wheel, ...] = ()
    """All wheels that work together, kept ones included."""
    uninstall: tuple[str, ...] = ()
    """Canonical names of the distributions that nothing replaces."""
    install: tuple[Wheel, ...] = ()
    companions: tuple[Companion, ...] = ()
    requires: tuple[str, ...] = ()
    """Missing requirements that are not in `install`; pip or uv chooses their versions."""
    consumers: tuple[Consumer, ...] = ()
    """The installed distributions that use CUDA."""
    rejected: tuple[Rejected, ...] = ()
    unlock: tuple[Unlock, ...] = ()
    matrix_added: tuple[AddedRows, ...] = ()
    """The rows of the matrix that are not the shipped ones."""

    @property
    def shadowed(self) -> bool:
        """Tell whether programs import another onnxruntime, whatever the environment has."""
        return any(row.code in BY_USER for row in self.findings)

    @property
    def release(self) -> str | None:
        """Return the release of onnxruntime-gpu in the selection, or None."""
        return next((row.version for row in self.selection if row.name == GPU_BUILD), None)
