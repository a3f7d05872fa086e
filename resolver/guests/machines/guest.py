"""Several machines, locks that are checked and states that are compared, on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest


class MachinesRequest(NamedTuple):
    """The flags of this guest."""

    with_cpu: bool = False
    hosts: tuple[str, ...] = ()


_SEVERAL = {
    "plan": "plan_several",
    "check": "plan_several",
    "lock": "lock_several",
    "download": "download_several",
}
"""What runs a command of the core for several machines."""


def _claim(line: CommandLine) -> str | None:
    if line.command == "lock" and line.check:
        return "check_lock"
    return _SEVERAL.get(line.command) if line.machines else None


def _check(line: CommandLine) -> None:
    alone = line.request(MachinesRequest).with_cpu and not line.machines
    refuse((alone, "--with-cpu", "--facts FILE --facts FILE"))


GUEST = Guest(
    commands={
        "diff": Command("diff_command", takes=2, needs="OLD NEW", several=True),
        "check_lock": Command("check_lock_command", takes=1, needs="FILE", typed="lock --check"),
        "plan_several": Command("plan_command", typed="plan", several=True),
        "lock_several": Command("lock_command", typed="lock", several=True),
        "download_several": Command("lock_command", typed="download", several=True),
    },
    flags=(
        Flag("with-cpu", "nothing"),
        Flag("hosts", "values", "FACTS", commands=("diff",), partner="diff"),
    ),
    claim=_claim,
    check=_check,
)
