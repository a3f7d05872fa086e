"""Reasons, findings and users of CUDA: codes of the table of texts, with their values.

Values travel as they are; `messages` makes words of them.
"""

from typing import Literal, NamedTuple

from ..errors import Cause

Severity = Literal["error", "warning", "info"]


class Named(NamedTuple):
    """A distribution at a version: `torch 2.7.1`."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RequirementLine(NamedTuple):
    """A requirement in a file of the user's."""

    file: str
    text: str
    """As PEP 508 has it: `onnxruntime-gpu<1.20`."""

    def __str__(self) -> str:
        return self.file


class Wanting(NamedTuple):
    """Who requires something, and what."""

    by: Named | RequirementLine
    requires: str
    """`torch==2.7.1`, `CUDA 12`."""

    def __str__(self) -> str:
        return f"{self.by} ({self.requires})"


Fact = str | Named | RequirementLine | Wanting | Cause
Values = tuple[tuple[str, Fact | tuple[Fact, ...]], ...]


def words(value: Fact | tuple[Fact, ...]) -> str:
    """Return a value as people read it; several with commas."""
    if isinstance(value, Fact):
        return str(value)
    return ", ".join(map(str, value))


class Reason(NamedTuple):
    """Why something is so."""

    code: str
    values: Values = ()

    @property
    def by(self) -> tuple[Named | RequirementLine, ...]:
        """Who is the reason: the distributions, or the lines of the user's file."""
        values = dict(self.values)
        value = values.get("by", values.get("torch", ()))
        who = (value,) if isinstance(value, str | Named | RequirementLine | Wanting) else value
        named = (each.by if isinstance(each, Wanting) else each for each in who)
        return tuple(each for each in named if isinstance(each, Named | RequirementLine))


def reason(code: str, **values: Fact | tuple[Fact, ...]) -> Reason:
    """Return the reason `code` with the values that its text names."""
    return Reason(code=code, values=tuple(values.items()))


class Finding(NamedTuple):
    """Something that is wrong here, or worth knowing."""

    code: str
    severity: Severity
    values: Values = ()
    evidence: tuple[str, ...] = ()
    """Facts, not texts."""


def finding(
    code: str, severity: Severity, *evidence: str, **values: Fact | tuple[Fact, ...]
) -> Finding:
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
    """No library of its CUDA is installed: it does not use the GPU."""

    @property
    def by(self) -> Named:
        """Return the distribution and its version."""
        return Named(self.name, self.version)
