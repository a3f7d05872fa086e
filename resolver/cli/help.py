"""What `--help` prints, for the whole program and for one command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..messages.catalog import Language
from ..messages.sections import width, wrapped
from .flags import Flag
from .guests import FLAGS, NAMES

COLUMNS = 100
GROUPS = ("mend", "share", "understand")
"""Of commands, by what they are for."""
_INDENT = 30


def help_text(
    command: str | None,
    table: Mapping[str, Any],
    language: Language,
    columns: int = COLUMNS,
) -> str:
    """Return the help of `command`, or of the whole program where it is None, in `columns`.

    That of the whole fits a terminal of 80 x 24. `table` is the parsed `help.toml`.
    """
    headings = {name: text[language] for name, text in table["headings"].items()}
    if command is None:
        groups = (
            _block(headings[group], _commands(table, group, language), 15, columns)
            for group in GROUPS
        )
        usage = headings["usage"].format(usage="ortgpu-fix [COMMAND] [FLAGS]")
        whole, more = ("\n".join(wrapped(headings[name], columns)) for name in ("whole", "more"))
        return "\n\n".join([usage, whole, "\n".join(groups), more])
    row, shown = table["commands"][command], {flag.name: flag for flag in FLAGS}
    names = dict.fromkeys([*row["flags"], *table["common"]["flags"]])
    flags = [
        (_flag(shown[name]), table["flags"][name][language]) for name in names if name in shown
    ]
    exits = [(f"  {code}", table["exits"][str(code)][language]) for code in row["exits"]]
    blocks = [headings["usage"].format(usage=row["usage"])]
    texts = (row["what"], *row["details"])
    blocks += ["\n".join(wrapped(text[language], columns)) for text in texts]
    rows = [(f"  {example}", "") for example in row["examples"]]
    blocks.append(_block(headings["examples"], rows, 0, columns))
    blocks.append(_block(headings["flags"], flags, min(_INDENT, columns // 3), columns))
    blocks.append(
        _block(headings["exits"], exits, 2 + max(len(head) for head, _ in exits), columns)
    )
    return "\n\n".join(blocks)


def _commands(table: Mapping[str, Any], group: str, language: Language) -> list[tuple[str, str]]:
    """Return the commands of a group."""
    rows = table["commands"]
    return [
        (f"  {name}", rows[name]["brief"][language])
        for name in NAMES
        if rows[name]["group"] == group
    ]


def _flag(flag: Flag) -> str:
    """Return `  -o, --output FILE`."""
    value = f" {flag.metavar}" if flag.metavar else ""
    return "  " + ", ".join(flag.spellings) + value


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
