"""What `--help` prints, for the whole program and for one command."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages.catalog import Language
from ..messages.sections import width
from .parser import COMMANDS, PLAN

COLUMNS = 100
_INDENT = 30


def help_text(
    parser: argparse.ArgumentParser,
    command: str | None,
    table: Mapping[str, Any],
    language: Language,
) -> str:
    """Return the help of `command`, or of the whole program where it is None.

    `table` is the parsed `help.toml`.
    """
    headings = {name: text[language] for name, text in table["headings"].items()}
    row = table["commands"][command or PLAN]
    actions = parser._actions  # noqa: SLF001 - argparse has no other way
    shown = {option.lstrip("-"): each for each in actions for option in each.option_strings}
    if command is None:
        names = [name for name in shown if name in table["flags"]]
        blocks = [
            headings["usage"].format(usage="ortgpu-fix [COMMAND] [FLAGS]"),
            headings["whole"],
            _block(headings["commands"], _commands(table, language), 12),
        ]
    else:
        names = [*row["flags"], *table["common"]["flags"]]
        blocks = [headings["usage"].format(usage=row["usage"]), _wrapped(row["what"][language], 0)]
    examples = [(f"  {example}", "") for example in row["examples"]]
    flags = [(_flag(shown[name]), table["flags"][name][language]) for name in names]
    blocks += [_block(headings["examples"], examples, 0), _block(headings["flags"], flags, _INDENT)]
    exits = [(f"  {code}", text[language]) for code, text in table["exits"].items()]
    blocks.append(_block(headings["exits"], exits, 5))
    if command is None:
        blocks.append(headings["more"])
    return "\n\n".join(blocks)


def _commands(table: Mapping[str, Any], language: Language) -> list[tuple[str, str]]:
    return [(f"  {name}", table["commands"][name]["what"][language]) for name in COMMANDS]


def _flag(action: argparse.Action) -> str:
    """Return `  -o, --output FILE`."""
    value = f" {action.metavar}" if action.metavar else ""
    return "  " + ", ".join(action.option_strings) + value


def _block(heading: str, rows: Iterable[tuple[str, str]], indent: int) -> str:
    lines = [heading]
    for head, text in rows:
        if not text:
            lines.append(head)
            continue
        first, *more = _wrapped(text, indent).splitlines()
        if width(head) + 2 > indent:
            lines += [head, f"{' ' * indent}{first.lstrip()}"]
        else:
            lines.append(f"{head:<{indent}}{first.lstrip()}")
        lines += more
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> str:
    """Return `text` in lines of `COLUMNS`; Chinese characters take two and break anywhere."""
    room = COLUMNS - indent
    if width(text) != len(text):
        room = room * len(text) // width(text)
    return textwrap.fill(text, room, initial_indent="", break_on_hyphens=False).replace(
        "\n", "\n" + " " * indent
    )
