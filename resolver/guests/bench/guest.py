"""`verify MODEL.onnx` and `verify --bench` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest


class BenchRequest(NamedTuple):
    """The flags of this guest."""

    bench: bool = False
    shape: tuple[str, ...] = ()
    report: str = ""


def _claim(line: CommandLine) -> str | None:
    measures = line.argument is not None or line.request(BenchRequest).bench
    return "measure" if line.command == "verify" and measures else None


def _check(line: CommandLine) -> None:
    bench, shape, report = line.request(BenchRequest)
    given = {"--report": bool(report), "--shape": bool(shape)}
    measuring = ", ".join(name for name, value in given.items() if value)
    alone = bool(measuring) and not (bench or line.argument)
    refuse((alone, measuring, "verify MODEL.onnx, verify --bench"))


GUEST = Guest(
    commands={"measure": Command("command", takes=1, typed="verify", looks=True)},
    flags=(
        Flag("bench", "nothing", commands=("verify",), partner="verify"),
        Flag("shape", "values", "NAME=SIZES", commands=("verify",), partner="verify"),
        Flag("report", "value", "FILE", commands=("verify",), partner="verify"),
    ),
    claim=_claim,
    check=_check,
)
