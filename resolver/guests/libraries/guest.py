"""`download --libraries` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest
from ...errors import Error


class LibrariesRequest(NamedTuple):
    """The flags of this guest."""

    libraries: bool = False
    for_: str | None = None


def _claim(line: CommandLine) -> str | None:
    return "download_libraries" if line.request(LibrariesRequest).libraries else None


def _check(line: CommandLine) -> None:
    """Refuse what means nothing to a program that is not Python."""
    libraries, program = line.request(LibrariesRequest)
    refuse((bool(program) and not libraries, "--for", "download --libraries"))
    of_python = {
        "--python": line.python,
        "--torch": line.torch,
        "--requirement": line.requirement,
        f"--provider {line.provider}": line.provider != "cuda",
        "several --facts": line.machines,
    }
    clash = next((flag for flag, given in of_python.items() if given), None)
    if libraries and clash:
        raise Error("flags-clash", flags=f"--libraries, {clash}")
    if program and line.ort:
        raise Error("flags-clash", flags="--for, --ort")


GUEST = Guest(
    commands={"download_libraries": Command("command", typed="download", looks=True)},
    flags=(
        Flag("libraries", "nothing", commands=("download",), partner="download"),
        Flag("for", "value", "PATH", commands=("download",), partner="download --libraries"),
    ),
    claim=_claim,
    check=_check,
)
