"""`explain` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import INSTALL, MACHINE, Flag
from ...cli.guests import Command, Guest
from ...cli.requests import PlanRequest


class ExplainRequest(NamedTuple):
    """Explain a log."""

    plan: PlanRequest = PlanRequest()
    words: tuple[str, ...] = ()
    """The files, `-` for standard input."""
    text_only: bool = False


GUEST = Guest(
    commands={
        "explain": Command(
            "command",
            ExplainRequest(),
            (*MACHINE, *INSTALL, "platform"),
            takes=None,
            environment="described",
        )
    },
    flags=(Flag("text-only", "machine", "nothing", commands=("explain",)),),
)
