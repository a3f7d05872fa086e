"""What `-h` and `--help` print, for the whole program and for one command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from .. import __version__
from ..data_files import load_table
from ..messages.catalog import Language
from ..messages.sections import width, wrapped
from . import console
from .flags import Flag, Heading
from .guests import NAMES, flags_of
from .requests import HelpRequest

COLUMNS = 100
GROUPS = ("fix", "diagnose", "share", "data")
"""Of commands, by what they are for."""
PLAN = "plan"
"""The command that the whole program is."""
_OF_PROGRAM = frozenset({"version", "completions"})
"""The flags that its help alone shows."""
_INDENT = 30


def run(asked: HelpRequest, environ: Mapping[str, str], language: Language) -> int:
    """Show the help, the version, or the completions of a shell."""
    del environ
    if asked.version:
        console.print_result(f"ortgpu-fix {__version__}")
    elif asked.completions:
        from .completions import completions

        console.print_result(completions(asked.completions, language))
    else:
        words = HelpWords(load_table("help"), language, console.columns(COLUMNS))
        shown = full_help if asked.full else short_help
        console.print_result(shown(asked.command, words))
    return 0


class HelpWords(NamedTuple):
    """The parsed `help.toml`, and how it is shown."""

    table: Mapping[str, Any]
    language: Language
    columns: int = COLUMNS

    def heading(self, name: str) -> str:
        """Return a heading."""
        return str(self.table["headings"][name][self.language])

    def brief(self, command: str) -> str:
        """Return what a command does, in a line."""
        return str(self.table["commands"][command]["brief"][self.language])

    def parts(self, command: str, key: str) -> list[Any]:
        """Return the usage, the details or the examples of a command; guests have some, too."""
        more = [row for row in self.table.get("more", {}).values() if row["command"] == command]
        rows = [self.table["commands"][command], *more]
        return [each for row in rows for each in row.get(key, ())]

    def flag(self, command: str, name: str) -> str:
        """Return what a flag does for this command."""
        own = self.table["commands"][command].get("flags", {})
        return str(own.get(name, self.table["flags"][name])[self.language])

    def flags(self, command: str) -> list[Flag]:
        """Return the flags that a command shows."""
        hidden = {*self.table["commands"][command].get("hides", ())}
        hidden |= set() if command == PLAN else _OF_PROGRAM
        return [flag for flag in flags_of(command) if flag.name not in hidden]


def full_help(command: str | None, words: HelpWords) -> str:
    """Return all that is to be said of `command`, or of the whole program where it is None."""
    name, columns = command or PLAN, words.columns
    row = words.table["commands"][name]
    exits = [
        (f"  {code}", words.table["exits"][str(code)][words.language]) for code in row["exits"]
    ]
    texts = [row["what"], *words.parts(name, "details")]
    examples = [(f"  {example}", "") for example in words.parts(name, "examples")]
    flags = words.flags(name)
    under = {
        heading: [
            (_spelled(flag), words.flag(name, flag.name))
            for flag in flags
            if flag.heading == heading
        ]
        for heading in get_args(Heading)
    }
    indent = min(_INDENT, columns // 3)
    return _paragraphs(
        _usage(name, words, of_program=command is None),
        "" if command else _commands(words),
        *("\n".join(wrapped(text[words.language], columns)) for text in texts),
        _block(words.heading("examples"), examples, 0, columns),
        *(_block(words.heading(key), rows, indent, columns) for key, rows in under.items() if rows),
        _block(words.heading("exits"), exits, 2 + max(len(head) for head, _ in exits), columns),
    )


def short_help(command: str | None, words: HelpWords) -> str:
    """Return what everyone needs of `command`, or of the whole program, on one screen."""
    name, columns = command or PLAN, words.columns
    row = words.table["commands"][name]
    shown = [flag for flag in words.flags(name) if flag.name in row["short"]]
    rows = [(_spelled(flag), re.split("[;；]", words.flag(name, flag.name))[0]) for flag in shown]
    indent = min(_INDENT, 2 + max((width(head) for head, _ in rows), default=0))
    what = words.heading("program") if command is None else row["what"][words.language]
    example = words.heading("example") + words.parts(name, "examples")[0 if command else 1]
    more = words.heading("more" if command else "more-program").format(command=command)
    return _paragraphs(
        _usage(name, words, of_program=command is None),
        "\n".join(wrapped(what, columns)),
        _block(words.heading("options"), rows, indent, columns) if rows else "",
        "" if command else _listed(words),
        "\n".join([example, *wrapped(more, columns)]),
    )


def _usage(command: str, words: HelpWords, *, of_program: bool) -> str:
    """Return the lines of usage, one below the other."""
    begin, lines = words.heading("usage"), words.parts(command, "usage")
    if of_program:
        lines = [lines[0], "ortgpu-fix COMMAND [OPTIONS]"]
    return begin + f"\n{' ' * width(begin)}".join(lines)


def _listed(words: HelpWords) -> str:
    """Return the commands that have a group, in its order."""
    names = [name for group in GROUPS for name in _of_group(words, group)]
    rows = [(f"  {name}", words.brief(name)) for name in names]
    return _block(words.heading("commands"), rows, 15, words.columns)


def _commands(words: HelpWords) -> str:
    """Return the commands under what they are for."""
    rows: list[tuple[str, str]] = []
    for group in GROUPS:
        rows.append((f"  {words.heading(group)}", ""))
        rows += [(f"    {name}", words.brief(name)) for name in _of_group(words, group)]
    return _block(words.heading("commands"), rows, 15, words.columns)


def _of_group(words: HelpWords, group: str) -> Sequence[str]:
    rows = words.table["commands"]
    return [name for name in NAMES if rows[name].get("group") == group]


def _spelled(flag: Flag) -> str:
    """Return `  -o, --output FILE`."""
    value = f" {flag.metavar}" if flag.metavar else ""
    return "  " + ", ".join(flag.spellings) + value


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _block(heading: str, rows: Iterable[tuple[str, str]], indent: int, columns: int) -> str:
    lines = [heading]
    for head, text in rows:
        if not text:
            lines.append(head)
            continue
        first, *more = wrapped(text, columns - indent)
        if width(head) + 2 > indent:
            lines += [head, f"{' ' * indent}{first}"]
        else:
            lines.append(f"{head:<{indent}}{first}")
        lines += [" " * indent + line for line in more]
    return "\n".join(lines)
