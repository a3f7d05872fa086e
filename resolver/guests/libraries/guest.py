"""`download --libraries` on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest
from ...cli.requests import PlanRequest, several_files
from ...errors import Error


class LibrariesRequest(NamedTuple):
    """Fetch libraries."""

    plan: PlanRequest = PlanRequest()
    directory: str | None = None
    for_: str | None = None


def _claim(line: CommandLine) -> str | None:
    return "download_libraries" if "libraries" in line.options else None


def _check(line: CommandLine) -> None:
    """Refuse what means nothing to a program that is not Python."""
    options = line.options
    refuse(("for_" in options and "libraries" not in options, "--for", "download --libraries"))
    of_python = {
        "--python": "python" in options,
        "--torch": "torch" in options,
        "--requirement": "requirement" in options,
        f"--provider {options.get('provider')}": "provider" in options,
        "several --facts": several_files(options.get("facts", ())),
    }
    clash = next((flag for flag, given in of_python.items() if given), None)
    if "libraries" in options and clash:
        raise Error("flags-clash", flags=f"--libraries, {clash}")
    if "for_" in options and "ort" in options:
        raise Error("flags-clash", flags="--for, --ort")


GUEST = Guest(
    commands={
        "download_libraries": Command(
            "command", LibrariesRequest(), typed="download", environment="none", looks=True
        )
    },
    flags=(
        Flag("libraries", "install", "nothing", commands=("download",)),
        Flag("for", "install", "value", "PATH", commands=("download",)),
    ),
    claim=_claim,
    check=_check,
)
