"""What of a command line does not go together, once its parts are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import Error
from .flags import RTX, CommandLine, Options, alone, lacking, refuse
from .guests import Command
from .requests import several_files

_UNKNOWN = {
    "command": ("command-unknown", "command-unknown-near"),
    "flag": ("flag-unknown", "flag-unknown-near"),
    "argument": ("argument-unknown", "argument-unknown-near"),
}
"""The errors of a word that nobody knows: of one that is near to nothing, and of another."""


def unknown(kind: str, word: str, known: Iterable[str]) -> Error:
    """Return the Error that `word` is none of its `kind`, and what it is near to."""
    import difflib

    unlike, beside = _UNKNOWN[kind]
    near = difflib.get_close_matches(word, [*known], n=1)
    if near:
        return Error("usage", problem=Error(beside, given=word, near=near[0]))
    return Error("usage", problem=Error(unlike, given=word))


def check_words(line: CommandLine, row: Command) -> None:
    """Refuse too many words or machines for a command, and too few."""
    if row.takes is not None and len(line.words) > row.takes:
        problem = Error("argument-unknown", given=line.words[row.takes])
        raise Error("usage", problem=problem)
    if len(line.words) < len(row.needs.split()):
        raise lacking(row.typed or line.command, row.needs, row.example)
    several = several_files(line.options.get("facts", ()))
    if several and not row.several:
        modes = (f"--{mode}" for mode in ("apply", "check") if line.options.get(mode))
        command = " ".join(filter(None, [line.named, *modes]))
        raise Error("several-machines", command=command, count=len(several))
    if row.words and line.words and line.words[0] not in row.words:
        raise unknown("argument", line.words[0], row.words)


def check_partners(line: CommandLine) -> None:
    """Refuse flags that need another one, or exclude one."""
    options, several = line.options, several_files(line.options.get("facts", ()))
    rtx, torch = options.get("provider") == RTX, options.get("torch", "keep")
    for clash, refused in (("lock", line.command == "lock"), ("several --facts", several)):
        if refused and rtx:
            raise Error("flags-clash", flags=f"--provider {RTX}, {clash}")
    if several and torch != "keep":
        raise Error("flags-clash", flags=f"--torch {torch}, several --facts")
    refuse(("write" in options and line.command != "apply", "--write", "--apply"))
    _check_machine(options, several)


def _check_machine(options: Options, several: Sequence[str]) -> None:
    """Refuse flags that describe two machines, or half of one."""
    if "from_text" in options:
        if "facts" in options:
            raise Error("flags-clash", flags="--from-text, --facts")
        return
    if ("driver" in options) != ("gpu" in options):
        raise Error("driver-without-gpu")
    if "driver" in options and several:
        raise Error("flags-clash", flags="--driver, --facts, --facts")
    if "platform" in options and "facts" in options:
        raise Error("flags-clash", flags="--platform, --facts")
    if "platform" in options and "driver" not in options:
        raise alone("--platform", "--driver VERSION --gpu GPU")
