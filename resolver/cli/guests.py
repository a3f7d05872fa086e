"""The commands of the core, and the guests: what this program also does.

Each guest is a directory of `guests/`. The core imports none of them. A guest whose directory is
not there is left out, and the rest works as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from . import requests as asked
from .flags import COMMON, CORE_FLAGS, INSTALL, MACHINE, CommandLine, Flag

GUESTS = ("bench", "explain", "libraries", "machines", "run", "update")
"""Their directories; one line each."""
_PACKAGE = __package__.rpartition(".")[0]


class Command(NamedTuple):
    """What runs: a module with `run(request, environ, language) -> exit code`."""

    module: str
    """In `cli/commands/`, or in the directory of the guest."""
    request: Any
    """What it is asked for where no flag is given; `requests.made` fills it."""
    flags: tuple[str, ...] = ()
    """Those that it takes, besides the common ones and those that guests add."""
    takes: int | None = 0
    """How many words may follow; None: any number."""
    needs: str = ""
    """Those that must follow, as the help has them: `OLD NEW`."""
    example: str = ""
    """How it is typed with those, or with the command line of another program."""
    words: tuple[str, ...] = ()
    """The words that may follow, where they are not any."""
    starts: bool = False
    """Whether what follows `--` is the command line of another program, which must follow."""
    typed: str = ""
    """How it is typed, where its name does not say: `lock --check`."""
    environment: asked.EnvironmentUse = "needed"
    """What it needs where no environment is named."""
    looks: bool = False
    """Whether it begins with a look at this machine."""
    adds_rows: bool = True
    """Whether the rows of `matrix --update` and `--matrix FILE` count."""
    several: bool = False
    """Whether it takes several `--facts`."""


class Guest(NamedTuple):
    """What a guest adds to the command line: the value `GUEST` of its module `guest`."""

    commands: Mapping[str, Command]
    """By the names that `CommandLine.command` then has; those without `typed` are typed so."""
    flags: tuple[Flag, ...] = ()
    claim: Callable[[CommandLine], str | None] = lambda _: None
    """Which of `commands` runs a line in the place of a command of the core."""
    check: Callable[[CommandLine], None] = lambda _: None
    """Refuses flags that do not go together."""


def _found() -> dict[str, Guest]:
    """Return the guests that are there, by their names."""
    names = [f"{_PACKAGE}.guests.{name}" for name in GUESTS]
    return {
        name: import_module(f"{name}.guest").GUEST for name in names if find_spec(name) is not None
    }


FOUND = _found()
FLAGS = (*CORE_FLAGS, *(flag for guest in FOUND.values() for flag in guest.flags))
_PLANNED = (*MACHINE, *INSTALL)
_APPLIED = ("dry-run", "apply", "check", "prefer", "write", "quiet")
_CORE = {
    "plan": Command(
        "commands.plan",
        asked.PlanRequest(),
        (*_APPLIED, *_PLANNED, "platform"),
        environment="planned",
        looks=True,
    ),
    "apply": Command("commands.apply", asked.ApplyRequest(), (*_APPLIED, *_PLANNED), looks=True),
    "check": Command(
        "commands.check", asked.CheckRequest(), ("check", "quiet", *_PLANNED), looks=True
    ),
    "undo": Command("commands.undo", asked.UndoRequest(), ("forget", "allow"), adds_rows=False),
    "verify": Command(
        "commands.verify", asked.VerifyRequest(), ("provider", "ignore-gpu"), looks=True
    ),
    "facts": Command(
        "commands.facts",
        asked.FactsRequest(),
        (*MACHINE, "platform", "from-text", "output"),
        environment="optional",
        looks=True,
    ),
    "lock": Command(
        "commands.lock",
        asked.LockRequest(),
        (*_PLANNED, "platform", "prefer", "output", "format", "directory", "check"),
        environment="optional",
        looks=True,
    ),
    "download": Command(
        "commands.download",
        asked.DownloadRequest(),
        (*_PLANNED, "platform", "prefer", "directory"),
        environment="optional",
        looks=True,
    ),
    "matrix": Command(
        "commands.matrix",
        asked.MatrixRequest(),
        ("driver", "gpu", "forget", "output"),
        takes=1,
    ),
    "cache": Command(
        "commands.cache",
        asked.CacheRequest(),
        takes=1,
        words=("dir", "info", "purge"),
        adds_rows=False,
    ),
    "help": Command("help", asked.HelpRequest(), takes=1, adds_rows=False),
}
COMMANDS = {
    **{name: row._replace(module=f"{_PACKAGE}.cli.{row.module}") for name, row in _CORE.items()},
    **{
        name: row._replace(module=f"{package}.{row.module}")
        for package, guest in FOUND.items()
        for name, row in guest.commands.items()
    },
}
"""Each with its whole module."""
NAMES = tuple(name for name, row in COMMANDS.items() if not row.typed)
"""The commands as they are typed."""


def flags_of(command: str) -> tuple[Flag, ...]:
    """Return the flags that a command takes, in the order of all flags."""
    names = {*COMMON, *COMMANDS[command].flags}
    return tuple(flag for flag in FLAGS if flag.name in names or command in flag.commands)


def takes_words(command: str) -> bool:
    """Return whether a word may follow a command, be it that a guest claims it then."""
    return any(
        row.takes != 0
        for name, row in COMMANDS.items()
        if (row.typed or name).split()[0] == command
    )
