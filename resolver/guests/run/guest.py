"""`run` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, alone, refuse
from ...cli.guests import Command, Guest


class RunRequest(NamedTuple):
    """The flags of this guest."""

    require_gpu: bool = False
    live: bool = False


def _check(line: CommandLine) -> None:
    if line.command != "run":
        return
    refuse((bool(line.output) and not line.json, "--output", "--json"))
    if not line.rest:
        raise alone("run", "-- COMMAND")


GUEST = Guest(
    commands={"run": Command("command", adds_rows=False)},
    flags=tuple(
        Flag(name, "nothing", commands=("run",), partner="run -- COMMAND")
        for name in ("require-gpu", "live")
    ),
    check=_check,
)
