"""`matrix --update` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest
from ...cli.requests import SourceOptions
from ...errors import Error


class UpdateRequest(NamedTuple):
    """Read what an index has and the matrix lacks."""

    sources: SourceOptions = SourceOptions()
    output: str | None = None
    json: bool = False
    all_platforms: bool = False
    ort_index_url: str = ""


def _claim(line: CommandLine) -> str | None:
    return "matrix_update" if "update" in line.options else None


def _check(line: CommandLine) -> None:
    for flag in ("all-platforms", "ort-index-url"):
        given = flag.replace("-", "_") in line.options
        refuse((given and "update" not in line.options, f"--{flag}", "matrix --update"))
    if "json" in line.options and line.options.get("output") == "-":
        raise Error("flags-clash", flags="--json, -o -")
    for clash in ("offline", "forget"):
        if "update" in line.options and clash in line.options:
            raise Error("flags-clash", flags=f"--update, --{clash}")


GUEST = Guest(
    commands={
        "matrix_update": Command(
            "command", UpdateRequest(), typed="matrix --update", adds_rows=False
        )
    },
    flags=(
        Flag("update", "sources", "nothing", commands=("matrix",)),
        Flag("all-platforms", "sources", "nothing", commands=("matrix",)),
        Flag("ort-index-url", "sources", "value", "URL", commands=("matrix",)),
    ),
    claim=_claim,
    check=_check,
)
