"""Reasons, findings and users of CUDA: codes of the table of texts, with their values."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Reason(NamedTuple):
    """Why something is so."""

    code: str
    values: tuple[tuple[str, str], ...] = ()


def reason(code: str, **values: str) -> Reason:
    """Return the reason `code` with the values that its text names."""
    return Reason(code=code, values=tuple(values.items()))


class Finding(NamedTuple):
    """Something that is wrong here, or worth knowing."""

    code: str
    severity: Severity
    values: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    """Facts, not texts."""


def finding(code: str, severity: Severity, *evidence: str, **values: str) -> Finding:
    """Return the finding `code` with the values that its texts name."""
    return Finding(code=code, severity=severity, values=tuple(values.items()), evidence=evidence)


class Consumer(NamedTuple):
    """An installed distribution that uses CUDA."""

    name: str
    version: str
    cuda: str | None
    """The CUDA major; None: not known, or chosen while it runs."""
    cudnn: str | None
    """The cuDNN major that it loads; None: none, or not known."""
    needs: tuple[str, ...]
    """The libraries that it links or loads from elsewhere, as far as they are known."""
    why: Reason
    idle: bool = False
    """No library of its CUDA is here: as things are, it does not use the GPU."""

    @property
    def by(self) -> str:
        """Return the distribution and its version."""
        return f"{self.name} {self.version}"
