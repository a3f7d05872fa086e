"""Completions for a shell, made by shtab of the parser and the words of the help."""

from __future__ import annotations

import argparse

import shtab

from ..data_files import load_table
from ..messages.catalog import Language
from .guests import COMMANDS, FLAGS, NAMES
from .help import HelpWords
from .parser import PLAN, add_flags, parser

_COMPLETED = {"FACTS": shtab.FILE, "FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
"""What the value of a flag is completed as, by how the help names it."""


def completions(shell: str, language: Language) -> str:
    """Return the script that completes the command line in `shell`, one of `flags.SHELLS`."""
    words = HelpWords(load_table("help"), language)
    flags = {flag.name: flag for flag in FLAGS}

    def show(command: str, name: str, action: argparse.Action) -> None:
        if name == "words":
            choices = NAMES if command == "help" else COMMANDS[command].words
            if choices:
                action.choices = choices
            else:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            return
        flag = flags[name]
        action.help = words.flag(command, name).replace("%", "%%")
        if flag.choices:
            action.choices = flag.choices
        elif flag.metavar in _COMPLETED:
            action.complete = _COMPLETED[flag.metavar]  # type: ignore[attr-defined]

    briefs = {name: words.brief(name) for name in NAMES}
    whole = parser(NAMES, shown=show, briefs=briefs)
    add_flags(whole, PLAN, shown=show)  # which stand before a command, too
    return str(shtab.complete(whole, shell=shell))
