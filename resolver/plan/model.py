"""The plan: what is wrong, which set works here, and what has to be done for it.

Only values; `resolve` makes them, `report` and `lock` write them, `apply` does them.
"""

from typing import Literal, NamedTuple

from ..facts.model import GPU_BUILD
from .reasons import Finding, Reason
from .wheels import Companion, Wheel

PlanVerdict = Literal["healthy", "fixable", "impossible"]


class Rejected(NamedTuple):
    """A release that does not work here, with every reason."""

    package: str
    version: str
    reasons: tuple[Reason, ...]


class Unlock(NamedTuple):
    """One change that would allow something better."""

    change: Reason
    gains: str
    """`onnxruntime-gpu 1.31.1`."""


class Plan(NamedTuple):
    """The whole answer."""

    verdict: PlanVerdict
    matrix_date: str
    matrix_digest: str
    """`sha256:…` over the matrix that the plan was made with."""
    findings: tuple[Finding, ...] = ()
    why: tuple[Reason, ...] = ()
    """What speaks for the selection."""
    cuda: str | None = None
    """The CUDA major of the selection; None where nothing works."""
    selection: tuple[Wheel, ...] = ()
    """The whole set that works together, what is kept included."""
    uninstall: tuple[str, ...] = ()
    """Canonical names of the distributions that leave for good."""
    install: tuple[Wheel, ...] = ()
    companions: tuple[Companion, ...] = ()
    """What makes it last: installed with it."""
    requires: tuple[str, ...] = ()
    """Ordinary requirements that are missing; the engine picks their versions."""
    rejected: tuple[Rejected, ...] = ()
    unlock: tuple[Unlock, ...] = ()

    @property
    def release(self) -> str | None:
        """Return the release of onnxruntime-gpu that the selection has; None where it has none."""
        return next((row.version for row in self.selection if row.name == GPU_BUILD), None)
