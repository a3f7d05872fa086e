"""Several machines, locks that are checked and states that are compared, on the command line."""

from __future__ import annotations

from typing import NamedTuple

from ...cli.flags import CommandLine, Flag, refuse
from ...cli.guests import Command, Guest
from ...cli.requests import CheckRequest, DownloadRequest, LockRequest, PlanRequest, several_files


class SeveralRequest(NamedTuple):
    """Plan for several machines."""

    plan: PlanRequest = PlanRequest()
    with_cpu: bool = False


class SeveralLockRequest(NamedTuple):
    """Lock for several machines."""

    lock: LockRequest = LockRequest()
    with_cpu: bool = False


class SeveralDownloadRequest(NamedTuple):
    """Fetch what several machines need."""

    download: DownloadRequest = DownloadRequest()
    with_cpu: bool = False


class CheckLockRequest(NamedTuple):
    """Hold a lock against a machine."""

    plan: PlanRequest = PlanRequest()
    words: tuple[str, ...] = ()
    """The lock."""


class DiffRequest(NamedTuple):
    """Compare two states of a project."""

    words: tuple[str, ...] = ()
    """The two files."""
    hosts: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    python: str | None = None
    json: bool = False


_SEVERAL = {
    "plan": "plan_several",
    "check": "check_several",
    "lock": "lock_several",
    "download": "download_several",
}
"""What runs a command of the core for several machines."""


def _claim(line: CommandLine) -> str | None:
    if line.command == "lock" and "check" in line.options:
        return "check_lock"
    return _SEVERAL.get(line.command) if several_files(line.options.get("facts", ())) else None


def _check(line: CommandLine) -> None:
    one = not several_files(line.options.get("facts", ()))
    refuse(("with_cpu" in line.options and one, "--with-cpu", "--facts FILE --facts FILE"))


GUEST = Guest(
    commands={
        "diff": Command(
            "diff_command",
            DiffRequest(),
            ("facts",),
            takes=2,
            needs="OLD NEW",
            example="diff HEAD:uv.lock uv.lock",
            several=True,
        ),
        "check_lock": Command(
            "check_lock_command",
            CheckLockRequest(),
            takes=1,
            needs="FILE",
            example="lock --check gpu.txt",
            typed="lock --check",
            environment="optional",
        ),
        "plan_several": Command("plan_command", SeveralRequest(), typed="plan", several=True),
        "check_several": Command("check_command", CheckRequest(), typed="check", several=True),
        "lock_several": Command("lock_command", SeveralLockRequest(), typed="lock", several=True),
        "download_several": Command(
            "download_command", SeveralDownloadRequest(), typed="download", several=True
        ),
    },
    flags=(
        Flag("with-cpu", "install", "nothing", commands=("plan", "check", "lock", "download")),
        Flag("hosts", "machine", "values", "FACTS", commands=("diff",)),
    ),
    claim=_claim,
    check=_check,
)
