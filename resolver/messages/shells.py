"""A command as text that a person pastes into a shell: sh, cmd, PowerShell.

The rules of Windows' shells are those of their documentation:
https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_parsing and
about_quoting_rules; https://learn.microsoft.com/windows-server/administration/windows-commands/cmd;
how a program splits its command line: https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..utils.foreign_text import clean

if TYPE_CHECKING:
    from ..facts.model import System

_BARE = re.compile(r"(?!-.*[.:])(?!~)[\w./\\:=+~-]+", re.ASCII)
"""What both shells take unchanged. PowerShell splits `-a.b` and `-a:b` in two, and expands `~`."""
_EXPANDED = re.compile('[%$`"\u201c\u201d\u201e]')
"""What one of the two expands or ends a string at, in double quotes: no text serves both then."""


class PastedCommand(NamedTuple):
    """A command as one shell takes it."""

    shell: str | None
    """`cmd`, `PowerShell`; None: every shell of the system takes it."""
    text: str


class TypedCommand(NamedTuple):
    """A command in a sentence: `{command:--apply}` in a text is this one with `--apply`.

    It stands between backticks, with the name of the shell where no text serves all of them.
    """

    words: tuple[str, ...] = ("ortgpu-fix",)
    system: System = "linux"

    def __format__(self, more: str) -> str:
        """Return it with the words of `more`."""
        shown = pasted_commands((*self.words, *more.split()), self.system)
        return ", ".join(
            f"`{clean(text)}`" + (f" ({shell})" if shell else "") for shell, text in shown
        )


PROGRAM = TypedCommand()
"""This program, without a flag."""


def pasted_commands(words: Sequence[str], system: System) -> tuple[PastedCommand, ...]:
    """Return the command of these words as the shells of `system` take it: one text if one serves.

    Where no text serves both cmd and PowerShell there are two, each with its shell. The words hold
    no line break; a `"`, which no path of Windows has, arrives in PowerShell from 7.3 on. In a
    batch file, unlike at the prompt, `%` has to be written twice.
    """
    if system != "windows":
        return (PastedCommand(None, " ".join(map(_for_sh, words))),)
    if any(_EXPANDED.search(word) for word in words) or not _BARE.fullmatch(words[0]):
        in_cmd = " ".join(map(_for_cmd, words))
        return (PastedCommand("cmd", in_cmd), PastedCommand("PowerShell", _in_powershell(words)))
    return (PastedCommand(None, " ".join(map(_for_both, words))),)


def pasted_word(word: str, system: System) -> str:
    """Return one word of a command as the shells of `system` take it; of Windows', that of cmd."""
    return _for_sh(word) if system != "windows" else _for_cmd(word)


def _for_sh(word: str) -> str:
    """Return a word for sh, bash and zsh; zsh reads a bare `=NAME` as the path of a program.

    Source: https://zsh.sourceforge.io/Doc/Release/Expansion.html (`=` expansion).
    """
    return f"'{word}'" if (quoted := shlex.quote(word)) == word and word[:1] == "=" else quoted


def _for_both(word: str) -> str:
    """Return a word without what either shell expands: bare, or in double quotes."""
    return word if _BARE.fullmatch(word) else f'"{_before_quote(word)}"'


def _for_cmd(word: str) -> str:
    """Return a word for the prompt of cmd, where a variable is expanded in quotes, too.

    Where `"` or `%` is in it, every sign of cmd's is escaped, the quotes among them, so that cmd
    sees no string that one of them could end; `^%` is no variable's beginning or end.
    """
    if not re.search('["%]', word):
        return _for_both(word)
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', word)
    return re.sub(r'[()%!^"<>&|]', r"^\g<0>", f'"{_before_quote(escaped)}"')


def _in_powershell(words: Sequence[str]) -> str:
    called = ["&"] if not _BARE.fullmatch(words[0]) else []  # a string alone is shown, not run
    return " ".join((*called, *map(_for_powershell, words)))


def _for_powershell(word: str) -> str:
    """Return a word for PowerShell: bare, or a verbatim string, whose quotes are doubled."""
    if _BARE.fullmatch(word):
        return word
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", word) + "'"


def _before_quote(word: str) -> str:
    """Double the backslashes at the end: before a quote each two of them are one."""
    return word + word[len(word.rstrip("\\")) :]
