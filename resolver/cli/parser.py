"""The command line: commands, flags, and what goes with what.

What a command needs is imported when it runs, so that `--help` is there at once, and only
after the children that it waits for were started.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..errors import Error
from .flags import RTX, CommandLine, Flag, alone, given, refuse
from .guests import COMMANDS, FLAGS, FOUND, NAMES

PLAN = "plan"
"""What runs without a command."""
RUN = "run"
CACHE = ("dir", "info", "purge")
MODES = ("dry-run", "apply", "check")
"""The flags that are commands, too."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are this program's own, in the user's language."""

    def error(self, message: str) -> NoReturn:
        """Raise Error `usage` instead of leaving the process."""
        raise Error("usage", problem=message)


def parser(shown: Callable[[str, argparse.Action], None] | None = None) -> Parser:
    """Return the parser of the whole command line; flags may stand before and after the command.

    `shown` gets each flag by its name, and `command` and `argument`, to add what a shell completes.
    """
    plain = functools.partial(argparse.HelpFormatter, width=80)  # else `shutil`, for the terminal's
    made = Parser(
        prog="ortgpu-fix",
        formatter_class=plain,
        add_help=False,
        exit_on_error=False,
    )
    actions = {
        "command": made.add_argument("command", nargs="?", type=_known_command),
        "argument": made.add_argument("argument", nargs="?"),
        "others": made.add_argument("others", nargs="*"),
    }
    for flag in FLAGS:
        if flag.takes == "nothing":
            action = made.add_argument(*flag.spellings, dest=flag.field, action="store_true")
        else:
            kind = "append" if flag.takes == "values" else "store"
            words = {"dest": flag.field, "action": kind, "type": _value_of(flag)}
            action = made.add_argument(*flag.spellings, **words)  # type: ignore[arg-type]
        actions[flag.name] = action
    for name, action in actions.items() if shown else ():
        shown(name, action)  # type: ignore[misc]
    return made


def _known_command(word: str) -> str:
    if word not in NAMES:
        raise _unknown(word, NAMES)
    return word


def _value_of(flag: Flag) -> Callable[[str], str]:
    """Return the type of a flag that takes a value, one of its choices where it has some.

    An empty one is that of a variable that is not set, and no wish.
    """

    def check(value: str) -> str:
        if not value:
            raise _lacking(f"--{flag.name}")
        value = flag.respelled.get(value, value)
        if flag.choices and value not in flag.choices:
            choices = ", ".join(flag.choices)
            problem = Error("value-unknown", flag=f"--{flag.name}", value=value, choices=choices)
            raise Error("usage", problem=problem)
        return value

    return check


def _lacking(name: str) -> Error:
    """Return the Error that `name` has no value."""
    return Error("usage", problem=Error("value-missing", flag=name))


def _unknown(word: str, known: Sequence[str]) -> Error:
    """Return the Error that nobody knows `word`, and what it is near to."""
    import difflib

    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return Error("usage", problem=Error("argument-unknown-near", given=word, near=near[0]))
    return Error("usage", problem=Error("argument-unknown", given=word))


def parse(argv: Sequence[str]) -> CommandLine:
    """Return the parsed command line.

    Raises Error `usage`, `flags-clash` or `driver-without-gpu`.
    """
    argv, rest = _own_words(_several_files(_joined(argv)))
    known = [spelling for flag in FLAGS for spelling in flag.spellings]
    for word in argv:  # argparse would complain of the value of such a flag first
        if word.startswith("--") and word.partition("=")[0] not in {*known, "--"}:
            raise _unknown(word.partition("=")[0], known)
    try:
        found, more = parser().parse_known_intermixed_args(argv)
    except argparse.ArgumentError as error:
        raise _without_value(error) from error
    if found.command == RUN and more and not rest:
        raise alone(RUN, "-- COMMAND")
    if more:
        raise Error("usage", problem=Error("argument-unknown", given=more[0]))
    if "" in {found.argument, *found.others}:
        raise _lacking(found.command)
    values = {name: value for name, value in vars(found).items() if value}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    values |= lists
    own = {name: value for name, value in values.items() if name in CommandLine._fields}
    guests = {name: value for name, value in values.items() if name not in own}
    line = CommandLine(**own, of_guests=guests, rest=rest)
    if line.help or line.version or line.completions:
        return line._replace(named=found.command, command=found.command or PLAN)
    return _checked(line, found.command)


def _joined(argv: Sequence[str]) -> list[str]:
    """Return the words with `--python -V:3.12` as one; argparse would take the second for a flag.

    What follows `--` is another program's.
    """
    words: list[str] = []
    for at, word in enumerate(argv):
        if word == "--":
            return [*words, *argv[at:]]
        if words[-1:] == ["--python"] and word.startswith("-V:"):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def _several_files(argv: Sequence[str]) -> list[str]:
    """Return the words with a `--facts` before each file of `--facts *.json`.

    Only where the command takes no argument, which a file may be; a command's own name is none.
    """
    taking = [(row.typed or name).split() for name, row in COMMANDS.items() if row.takes != 0]
    if any(set(argv).issuperset(words) for words in ([RUN], *taking)):
        return list(argv)
    words: list[str] = []
    for word in argv:
        if words[-2:-1] == ["--facts"] and re.search(r"[./\\]", word) and word[0] != "-":
            words.append("--facts")
        words.append(word)
    return words


def _own_words(argv: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return our own words, and those of the program that `run` starts: all after `--`.

    With another command `--` says that what follows is no flag, as everywhere.
    """
    if "--" in argv:
        at = list(argv).index("--")
        with contextlib.suppress(argparse.ArgumentError, Error):  # told by who parses all of it
            words, _ = parser().parse_known_args(argv[:at])
            if words.command == RUN:
                return argv[:at], tuple(argv[at + 1 :])
    return argv, ()


def _without_value(error: argparse.ArgumentError) -> Error:
    """Return the Error of a flag that lacks its value, or has one that it does not take."""
    for flag in FLAGS:
        if error.argument_name == "/".join(flag.spellings):
            if flag.takes == "nothing":
                return Error("usage", problem=Error("value-superfluous", flag=f"--{flag.name}"))
            return _lacking(f"--{flag.name}")
    return Error("usage", problem=error)


def _checked(line: CommandLine, named: str | None) -> CommandLine:
    """Return `line` with the module of its command; refuse what does not go together."""
    modes = [mode for mode in MODES if getattr(line, mode.replace("-", "_"))]
    locks = named == "lock" and modes == ["check"]
    plans = named == PLAN and modes == ["dry-run"]
    if len(modes) > 1 or (modes and named and not (locks or plans) and modes != [named]):
        flags = [f"--{mode}" for mode in modes]
        raise Error("flags-clash", flags=", ".join([*filter(None, [named]), *flags]))
    command = named or (modes[0] if modes and modes != ["dry-run"] else PLAN)
    for flag in FLAGS:
        if flag.commands and given(line, flag) and command not in flag.commands:
            raise alone(f"--{flag.name}", flag.partner)
    line = line._replace(named=named, command=command)
    _check_partners(line)
    for guest in FOUND.values():
        guest.check(line)
        line = line._replace(command=guest.claim(line) or line.command)
    _check_arguments(line)
    apply, check = command == "apply", "check" in {command, *modes}
    return line._replace(apply=apply, check=check)


def _check_arguments(line: CommandLine) -> None:
    """Refuse too many words or machines for a command, and too few."""
    row = COMMANDS[line.command]
    words = [word for word in (line.argument, *line.others) if word is not None]
    if row.takes is not None and len(words) > row.takes:
        problem = Error("argument-unknown", given=words[row.takes])
        raise Error("usage", problem=problem)
    if len(words) < len(row.needs.split()):
        raise alone(row.typed or line.command, row.needs)
    if line.machines and not row.several:
        asked = [line.named, line.apply and "--apply", line.check and "--check"]
        command = " ".join(word for word in asked if word)
        raise Error("several-machines", command=command, count=len(line.machines))
    if line.command == "cache" and (line.argument or "info") not in CACHE:
        raise _unknown(line.argument or "", CACHE)
    if line.command == "help" and line.argument is not None:
        _known_command(line.argument)


def _check_partners(line: CommandLine) -> None:
    """Refuse flags that need another one, or exclude one."""
    rtx = line.provider == RTX
    for clash, refused in (("lock", line.command == "lock"), ("several --facts", line.machines)):
        if refused and rtx:
            raise Error("flags-clash", flags=f"--provider {RTX}, {clash}")
    if line.machines and line.torch not in {None, "keep"}:
        raise Error("flags-clash", flags=f"--torch {line.torch}, several --facts")
    refuse((line.write and line.command != "apply", "--write", "--apply"))
    _check_machine(line)


def _check_machine(line: CommandLine) -> None:
    """Refuse flags that describe two machines, or half of one."""
    if line.from_text and line.facts:
        raise Error("flags-clash", flags="--from-text, --facts")
    if (line.driver is None) != (line.gpu is None) and not line.from_text:
        raise Error("driver-without-gpu")
    if line.driver is not None and line.machines:
        raise Error("flags-clash", flags="--driver, --facts, --facts")
    if line.platform is not None and line.facts:
        raise Error("flags-clash", flags="--platform, --facts")
    if line.platform is not None and line.driver is None and not line.from_text:
        raise alone("--platform", "--driver VERSION --gpu GPU")


def run_command(line: CommandLine, environ: Mapping[str, str]) -> int:
    """Run the command of `line` and return its exit code; raises what it raises.

    Ctrl-C is told as an Error where a user asks himself what has been done.
    """
    try:
        return _run_command(line, environ)
    except KeyboardInterrupt as error:
        if line.command == "apply":
            raise Error("interrupted") from error
        if line.named == "download":
            raise Error("interrupted-download", folder=line.directory) from error
        raise


def _run_command(line: CommandLine, environ: Mapping[str, str]) -> int:
    from . import console

    if line.version:
        console.print_result(f"ortgpu-fix {__version__}")
        return 0
    if line.completions:
        from .completions import completions

        console.print_result(completions(line.completions, console.user_language(environ)))
        return 0
    if line.help or line.command == "help":
        _print_help(line, environ)
        return 0
    row = COMMANDS[line.command]
    if row.looks and not line.facts and not line.from_text:
        from .described import start_looking

        line = line._replace(processes=start_looking(line, environ))
    if row.adds_rows and not line.forget:
        from .matrix_files import use_matrix_files

        use_matrix_files(line, environ)
    code: int = import_module(row.module).run(line, environ, console.user_language(environ))
    return code


def _print_help(line: CommandLine, environ: Mapping[str, str]) -> None:
    from ..data_files import load_table
    from . import console
    from .help import COLUMNS, help_text

    command = line.argument if line.named == "help" else line.named
    if command is None and (line.apply or line.check or line.dry_run):
        command = PLAN
    language, columns = console.user_language(environ), console.columns(COLUMNS)
    console.print_result(help_text(command, load_table("help"), language, columns))
