"""`run` on the command line."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, Options, refuse
from ...cli.guests import Command, Guest


class RunRequest(NamedTuple):
    """Run a program."""

    rest: tuple[str, ...] = ()
    """Its command line."""
    python: str | None = None
    output: str | None = None
    json: bool = False
    options: Options = MappingProxyType({})
    require_gpu: bool = False
    live: bool = False


def _check(line: CommandLine) -> None:
    silent = line.command == "run" and "json" not in line.options
    refuse(("output" in line.options and silent, "--output", "run --json"))


GUEST = Guest(
    commands={
        "run": Command(
            "command",
            RunRequest(),
            ("output",),
            starts=True,
            example="run -- python app.py",
            adds_rows=False,
        )
    },
    flags=tuple(
        Flag(name, "output", "nothing", commands=("run",)) for name in ("require-gpu", "live")
    ),
    check=_check,
)
