"""Why something is so, and what was found: codes of the table of texts with their values."""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Reason(NamedTuple):
    """Why something is so: a code of the table of texts, and the values of its placeholders."""

    code: str
    values: tuple[tuple[str, str], ...] = ()


def reason(code: str, **values: str) -> Reason:
    """Return the reason `code` with the values that its text names."""
    return Reason(code=code, values=tuple(values.items()))


class Finding(NamedTuple):
    """Something that was found here, wrong or worth knowing."""

    code: str
    severity: Severity
    values: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    """What was seen, and where: facts, not texts."""


def finding(code: str, severity: Severity, *evidence: str, **values: str) -> Finding:
    """Return the finding `code` with the values that its texts name, and what was seen."""
    return Finding(code=code, severity=severity, values=tuple(values.items()), evidence=evidence)
