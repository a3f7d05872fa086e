"""The line of `--check`."""

from __future__ import annotations

from ..messages.catalog import Texts
from ..plan.model import Plan


def check_line(plan: Plan, machine: str, texts: Texts) -> str:
    """Return in one line whether an environment is OK; `machine`: its name, or empty."""
    if plan.verdict == "healthy" and plan.unfixable:
        line = texts.label("check-outside", problem=texts.summary(plan.unfixable[0]))
    else:
        line = texts.label(f"check-{plan.verdict}")
    return f"{machine}: {line}" if machine else line
