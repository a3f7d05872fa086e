"""`verify MODEL.onnx` and `verify --bench` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, alone
from ...cli.guests import Command, Guest
from ...cli.requests import VerifyRequest


class BenchRequest(NamedTuple):
    """Measure a model."""

    verify: VerifyRequest = VerifyRequest()
    words: tuple[str, ...] = ()
    """The model, where one is given."""
    bench: bool = False
    shape: tuple[str, ...] = ()
    report: str = ""


def _measures(line: CommandLine) -> bool:
    return bool(line.words or line.options.get("bench"))


def _claim(line: CommandLine) -> str | None:
    return "measure" if line.command == "verify" and _measures(line) else None


def _check(line: CommandLine) -> None:
    for name in ("report", "shape"):
        if name in line.options and not _measures(line):
            raise alone(f"--{name}", "verify MODEL.onnx", "verify --bench")


GUEST = Guest(
    commands={"measure": Command("command", BenchRequest(), takes=1, typed="verify", looks=True)},
    flags=(
        Flag("bench", "output", "nothing", commands=("verify",)),
        Flag("shape", "output", "values", "NAME=SIZES", commands=("verify",)),
        Flag("report", "output", "value", "FILE", commands=("verify",)),
    ),
    claim=_claim,
    check=_check,
)
