"""The guests: what this program also does, each a directory of `guests/`, and their commands.

The core imports none of them. A guest whose directory is not there is left out, and the rest works
as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from .flags import CORE_FLAGS, CommandLine, Flag

GUESTS = ("bench", "explain", "libraries", "machines", "run", "update")
"""Their directories; one line each."""
_PACKAGE = __package__.rpartition(".")[0]


class Command(NamedTuple):
    """What runs: a module with `run(line, environ, language) -> exit code`."""

    module: str
    """In `cli/commands/`, or in the directory of the guest."""
    takes: int | None = 0
    """How many words may follow; None: any number."""
    needs: str = ""
    """Those that must follow, as the help has them: `OLD NEW`."""
    typed: str = ""
    """How it is typed, where its name does not tell: `lock --check`."""
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
CORE_COMMANDS = {
    "plan": Command("commands.plan", looks=True),
    "apply": Command("commands.apply", looks=True),
    "check": Command("commands.check", looks=True),
    "undo": Command("commands.undo", adds_rows=False),
    "verify": Command("commands.verify", looks=True),
    "facts": Command("commands.facts", looks=True),
    "lock": Command("commands.lock", looks=True),
    "download": Command("commands.download", looks=True),
    "matrix": Command("commands.matrix", takes=1),
    "cache": Command("commands.cache", takes=1, adds_rows=False),
    "help": Command("", takes=1),
}
COMMANDS = {
    **{
        name: row._replace(module=f"{_PACKAGE}.cli.{row.module}")
        for name, row in CORE_COMMANDS.items()
    },
    **{
        name: row._replace(module=f"{package}.{row.module}")
        for package, guest in FOUND.items()
        for name, row in guest.commands.items()
    },
}
"""Each with its whole module."""
NAMES = tuple(name for name, row in COMMANDS.items() if not row.typed)
"""The commands as they are typed."""
