"""`matrix --update` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest
from ...errors import Error


class UpdateRequest(NamedTuple):
    """The flags of this guest."""

    update: bool = False
    all_platforms: bool = False
    ort_index_url: str = ""


def _claim(line: CommandLine) -> str | None:
    return "matrix_update" if line.request(UpdateRequest).update else None


def _check(line: CommandLine) -> None:
    update, all_platforms, index = line.request(UpdateRequest)
    given = {"--all-platforms": all_platforms, "--ort-index-url": bool(index)}
    reading = ", ".join(name for name, value in given.items() if value)
    refuse((bool(reading) and not update, reading, "matrix --update"))
    for flag, clash in (("--offline", line.offline), ("--forget", line.forget)):
        if update and clash:
            raise Error("flags-clash", flags=f"--update, {flag}")


GUEST = Guest(
    commands={"matrix_update": Command("command", typed="matrix --update", adds_rows=False)},
    flags=(
        Flag("update", "nothing", commands=("matrix",), partner="matrix"),
        Flag("all-platforms", "nothing"),
        Flag("ort-index-url", "value", "URL"),
    ),
    claim=_claim,
    check=_check,
)
