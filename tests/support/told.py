"""What reasons, findings and unlocks hold, as people read it."""

from __future__ import annotations

from typing import Protocol

from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Unlock
from ortgpu_fix.plan.reasons import RequirementLine, Values, words

TEXTS = load_texts("en")


class HasValues(Protocol):
    """A reason, a finding, or what holds their values."""

    @property
    def values(self) -> Values: ...


def values_of(row: HasValues) -> dict[str, str]:
    """Return the values of a reason or finding by name."""
    return {name: words(value) for name, value in row.values}


def gains(unlock: Unlock) -> str:
    """Return what an unlock would allow: `onnxruntime-gpu 1.31.1`."""
    return TEXTS.gains(unlock)


def required(*texts: str) -> tuple[RequirementLine, ...]:
    """Return lines of a requirements file `r.txt`."""
    return tuple(RequirementLine("r.txt", text) for text in texts)
