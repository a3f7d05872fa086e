"""Completions for a shell, made by shtab of the parser and the words of the help."""

from __future__ import annotations

import argparse

import shtab

from ..data_files import load_table
from ..messages.catalog import Language
from .guests import FLAGS, NAMES
from .parser import CACHE, parser

_COMPLETED = {"FACTS": shtab.FILE, "FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
"""What the value of a flag is completed as, by how the help names it."""
_ARGUMENT = {
    "bash": """
_ortgpu_fix_file() {
  case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
    *" help "*) compgen -W "{COMMANDS}" -- "$1" ;;
    *" cache "*) compgen -W "{CACHE}" -- "$1" ;;
    *) _shtab_compgen_files "$1" ;;
  esac
}
""",
    "zsh": """
_ortgpu_fix_file() {
  case " ${words[1,CURRENT-1]} " in
    *" help "*) compadd -- {COMMANDS} ;;
    *" cache "*) compadd -- {CACHE} ;;
    *) _files ;;
  esac
}
""",
    "fish": """
function _ortgpu_fix_file
  set -l words (commandline -opc)
  if contains help $words
    string split ' ' '{COMMANDS}'
  else if contains cache $words
    string split ' ' '{CACHE}'
  else
    __fish_complete_path (commandline -ct)
  end
end
""",
}
"""What completes the word after the command: another command, what a cache does, or a file.

shtab knows that word by its place alone; one with `file` in its name is quoted as a file in bash.
"""


def completions(shell: str, language: Language) -> str:
    """Return the script that completes the command line in `shell`, one of `flags.SHELLS`."""
    words = load_table("help")["flags"]
    flags = {flag.name: flag for flag in FLAGS}

    def show(name: str, action: argparse.Action) -> None:
        if name == "command":
            action.choices = NAMES
        elif name == "others":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif name == "argument":
            action.complete = _argument()  # type: ignore[attr-defined]
        else:
            flag = flags[name]
            action.help = words[name][language].replace("%", "%%")
            if flag.choices:
                action.choices = flag.choices
            elif flag.metavar in _COMPLETED:
                action.complete = _COMPLETED[flag.metavar]  # type: ignore[attr-defined]

    return str(shtab.complete(parser(show), shell=shell))


def _argument() -> dict[str, object]:
    """Return what shtab takes as the completion of the word after the command."""
    commands, cache = " ".join(NAMES), " ".join(CACHE)
    made = {
        shell: text.replace("{COMMANDS}", commands).replace("{CACHE}", cache)
        for shell, text in _ARGUMENT.items()
    }
    called = {"bash": "_ortgpu_fix_file", "zsh": "_ortgpu_fix_file", "fish": "(_ortgpu_fix_file)"}
    return {**shtab.FILE, **called, "preamble": made}
