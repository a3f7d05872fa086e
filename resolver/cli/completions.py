"""Completions for a shell, made by shtab of the parser and the words of the help."""

from __future__ import annotations

import argparse

import shtab

from ..data_files import load_table
from ..messages.catalog import Language
from .flags import FLAGS
from .parser import COMMANDS, parser

_COMPLETED = {"FACTS": shtab.FILE, "FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
"""What the value of a flag is completed as, by how the help names it."""


def completions(shell: str, language: Language) -> str:
    """Return the script that completes the command line in `shell`, one of `flags.SHELLS`."""
    words = load_table("help")["flags"]
    flags = {flag.name: flag for flag in FLAGS}

    def show(name: str, action: argparse.Action) -> None:
        if name == "command":
            action.choices = COMMANDS
        elif name in {"argument", "others"}:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        else:
            flag = flags[name]
            action.help = words[name][language].replace("%", "%%")
            if flag.choices:
                action.choices = flag.choices
            elif flag.metavar in _COMPLETED:
                action.complete = _COMPLETED[flag.metavar]  # type: ignore[attr-defined]

    return str(shtab.complete(parser(show), shell=shell))
