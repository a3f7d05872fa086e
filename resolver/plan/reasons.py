"""Reasons and findings: codes of the table of texts, with the values of their placeholders."""

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
