"""`explain` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import Flag
from ...cli.guests import Command, Guest


class ExplainRequest(NamedTuple):
    """The flags of this guest."""

    text_only: bool = False


GUEST = Guest(
    commands={"explain": Command("command", takes=None)},
    flags=(Flag("text-only", "nothing", commands=("explain",), partner="explain"),),
)
