"""The command line: what was typed becomes the request of one command, and that runs.

What a command needs is imported when it runs, so that `--help` is there at once, and only
after the children that it waits for were started.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from ..errors import Error
from .flags import RTX, CommandLine, Flag, Options, alone, lacking, refuse
from .guests import COMMANDS, FLAGS, FOUND, NAMES, Command, flags_of, takes_words
from .requests import HelpRequest, MachineOptions, made, several_files

PLAN = "plan"
"""What runs without a command."""
MODES = ("dry-run", "apply", "check")
"""The flags that are commands, too."""
_FILE = re.compile(r"(?!-).*[./\\]")
"""A word that names a file, where a command could stand."""

_UNKNOWN = {
    "command": ("command-unknown", "command-unknown-near"),
    "flag": ("flag-unknown", "flag-unknown-near"),
    "argument": ("argument-unknown", "argument-unknown-near"),
}
"""The errors of a word that nobody knows: of one that is near to nothing, and of another."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are this program's own, in the user's language."""

    def __init__(self, **words: Any) -> None:  # noqa: ANN401 - argparse has its own types
        # Else argparse imports `shutil`, for the width of the terminal.
        plain = functools.partial(argparse.HelpFormatter, width=80)
        super().__init__(
            prog="ortgpu-fix",
            formatter_class=plain,
            add_help=False,
            argument_default=argparse.SUPPRESS,
            exit_on_error=False,
            **{name: word for name, word in words.items() if name != "prog"},
        )

    def error(self, message: str) -> NoReturn:
        """Raise Error `usage` instead of leaving the process."""
        raise Error("usage", problem=message)


class Invocation(NamedTuple):
    """What runs: a command, and what it is asked for."""

    command: str
    """Of `guests.COMMANDS`."""
    request: Any
    options: Options
    """The flags that were given."""
    named: str | None = None
    """The command as it was typed; None: none was."""

    @property
    def machine(self) -> MachineOptions:
        """The machine and the environment that it is for."""
        return made(MachineOptions(COMMANDS[self.command].environment), self.options)


Completing = Callable[[str, str, argparse.Action], object]
"""What gets each flag by its command and name, and what follows a command as `words`."""


def parser(
    commands: Iterable[str],
    *,
    several: bool = True,
    shown: Completing = lambda *_: None,
    briefs: Mapping[str, str] = MappingProxyType({}),
) -> Parser:
    """Return the parser of these commands, each with its own flags.

    `several`: `--facts` takes several files. `shown` adds what a shell completes, and `briefs` are
    what it says of the commands.
    """
    made = Parser()
    each = made.add_subparsers(dest="command", prog=made.prog, parser_class=Parser)
    for command in commands:
        own = each.add_parser(command, help=briefs.get(command, ""))
        add_flags(own, command, several=several, shown=shown)
    return made


def add_flags(to: Parser, command: str, *, several: bool = True, shown: Completing) -> None:
    """Add what a command takes to its parser; as `parser`."""
    for flag in flags_of(command):
        kind: dict[str, Any] = {"action": "store_true"}
        if flag.takes != "nothing":
            kind = {"type": _value_of(flag)}
        if flag.takes == "values":
            many = several and flag.name == "facts"
            kind |= {"action": "extend", "nargs": "+" if many else 1}
        shown(command, flag.name, to.add_argument(*flag.spellings, dest=flag.field, **kind))
    if takes_words(command):
        shown(command, "words", to.add_argument("words", nargs="*"))


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


def _unknown(kind: str, word: str, known: Iterable[str]) -> Error:
    """Return the Error that `word` is none of its `kind`, and what it is near to."""
    import difflib

    unlike, beside = _UNKNOWN[kind]
    near = difflib.get_close_matches(word, [*known], n=1)
    if near:
        return Error("usage", problem=Error(beside, given=word, near=near[0]))
    return Error("usage", problem=Error(unlike, given=word))


def parse(argv: Sequence[str]) -> Invocation:
    """Return what a command line asks for.

    Raises Error `usage`, `flags-clash`, `driver-without-gpu` or `several-machines`.
    """
    line = _read(argv)
    if line.command == "help" or {"help", "version", "completions"} & line.options.keys():
        return _help(line, full="-h" not in argv)
    _check_partners(line)
    for guest in FOUND.values():
        guest.check(line)
        line = line._replace(command=guest.claim(line) or line.command)
    row = COMMANDS[line.command]
    _check_words(line, row)
    more = {"words": line.words, "rest": line.rest, "environment": row.environment}
    values = {**line.options, **more, "options": line.options}
    return Invocation(line.command, made(row.request, values), line.options, line.named)


def _help(line: CommandLine, *, full: bool) -> Invocation:
    """Return what shows the help of a command, which needs nothing else to be right."""
    shown = line.named if line.command == PLAN and not line.options.get("dry_run") else line.command
    if line.command == "help":
        _check_words(line, COMMANDS["help"])
        shown = line.words[0] if line.words else None
        for word in line.words:
            _require_command(word)
    request = made(HelpRequest(command=shown, full=full), line.options)
    return Invocation("help", request, line.options, line.named)


def _read(argv: Sequence[str]) -> CommandLine:
    """Return the parts of a command line, whether or not they go together.

    What follows `--` is another program's, or no flag.
    """
    at = list(argv).index("--") if "--" in argv else len(argv)
    typed, rest = _joined(argv[:at]), tuple(argv[at + 1 :])
    named = _taken_command(typed)
    command = _with_mode(named, typed)
    row = COMMANDS[command]
    if row.starts and not rest and not {"-h", "--help"}.intersection(typed):
        problem = Error("separator-missing", command=command, example=row.example)
        raise Error("usage", problem=problem)
    _require_flags(typed, flags_of(command))
    try:
        reader = parser([command], several=_takes_files(command, typed))
        found, more = reader.parse_known_args([command, *typed])
    except argparse.ArgumentError as error:
        raise _without_value(error) from error
    values = vars(found)
    for word in more:
        if word.startswith("-") and word != "-":
            raise _misplaced(word)
    words = (*values.pop("words", ()), *more, *(() if row.starts else rest))
    if "" in words:
        raise _lacking(command)
    return CommandLine(command, named, words, rest if row.starts else (), _given(values))


def _joined(argv: Sequence[str]) -> list[str]:
    """Return the words with `--python -V:3.12` as one: argparse takes the second for a flag."""
    words: list[str] = []
    for word in argv:
        if words[-1:] == ["--python"] and word.startswith("-V:"):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def _taken_command(typed: list[str]) -> str | None:
    """Take the command out of `typed`: the first word that is no flag and no flag's value.

    Flags stand before it and after it alike: its own parser gets all of them. Raises Error `usage`
    for a word that is no command.
    """
    valued = {each for flag in FLAGS if flag.takes != "nothing" for each in flag.spellings}
    before, at = "", 0
    while at < len(typed):
        word = typed[at]
        if word.startswith("-"):
            _require_flags([word], FLAGS)
            last = word if word.startswith("--") else f"-{word[-1]}"  # of `-vo`
            before, at = word, at + 1 + (last in valued)
        elif before == "--facts" and _FILE.match(word):
            at += 1
        else:
            if _FILE.match(word):  # of a flag of another command, more likely
                _require_flags(typed, flags_of(PLAN))
            _require_command(word)
            return typed.pop(at)
    return None


def _require_command(word: str) -> None:
    if word not in NAMES:
        raise _unknown("command", word, NAMES)


def _with_mode(named: str | None, typed: Sequence[str]) -> str:
    """Return the command of a line; a flag may be the command. Raises Error `flags-clash`."""
    modes = [mode for mode in MODES if f"--{mode}" in typed]
    known = [
        [],
        [named],
        ["check"] if named == "lock" else [],
        ["dry-run"] if named == PLAN else [],
    ]
    if len(modes) > 1 or (named and modes not in known):
        flags = [*filter(None, [named]), *(f"--{mode}" for mode in modes)]
        raise Error("flags-clash", flags=", ".join(flags))
    return named or next((mode for mode in modes if mode != "dry-run"), PLAN)


def _takes_files(command: str, typed: Sequence[str]) -> bool:
    """Return whether `--facts *.json` is several files: where the command takes no word."""
    rows = {row.typed or name: row for name, row in COMMANDS.items() if row.takes != 0}
    return not any({command, *typed}.issuperset(words.split()) for words in rows)


def _require_flags(typed: Sequence[str], flags: Iterable[Flag]) -> None:
    """Refuse flags that are none of `flags`: argparse would complain of their values first."""
    own = {spelling for flag in flags for spelling in flag.spellings}
    for word in typed:
        spelling = word.partition("=")[0]
        if word.startswith("--") and spelling not in own:
            raise _misplaced(spelling)


def _misplaced(spelling: str) -> Error:
    """Return the Error of a flag that is none, or one of other commands."""
    flag = next((flag for flag in FLAGS if spelling in flag.spellings), None)
    if flag is None:
        return _unknown("flag", spelling, [each for flag in FLAGS for each in flag.spellings])
    names = [name for name in NAMES if flag in flags_of(name)]
    if "apply" in names and "plan" in names:
        names.remove("plan")
    shown = [f"--{name}" if name in MODES else name for name in names]
    return alone(f"--{flag.name}", *shown)


def _without_value(error: argparse.ArgumentError) -> Error:
    """Return the Error of a flag that lacks its value, or has one that it does not take."""
    for flag in FLAGS:
        if error.argument_name == "/".join(flag.spellings):
            if flag.takes == "nothing":
                return Error("usage", problem=Error("value-superfluous", flag=f"--{flag.name}"))
            return _lacking(f"--{flag.name}")
    return Error("usage", problem=error)


def _given(values: Mapping[str, Any]) -> Options:
    """Return what was given, without what means the same as nothing."""
    defaults = {flag.field: flag.default for flag in FLAGS if flag.default}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if value and name != "command" and value != defaults.get(name)
    }


def _check_words(line: CommandLine, row: Command) -> None:
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
        raise _unknown("argument", line.words[0], row.words)


def _check_partners(line: CommandLine) -> None:
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


def help_of(argv: Sequence[str]) -> str:
    """Return the command that shows the help for a command line, right or wrong."""
    named = next((word for word in argv if word in NAMES), PLAN)
    return "`ortgpu-fix --help`" if named in {PLAN, *MODES} else f"`ortgpu-fix help {named}`"


def run_command(asked: Invocation, environ: Mapping[str, str]) -> int:
    """Run a command and return its exit code; raises what it raises.

    Ctrl-C is reported as an Error where a user asks himself what has been done.
    """
    try:
        return _run_command(asked, environ)
    except KeyboardInterrupt as error:
        if asked.command == "apply":
            raise Error("interrupted") from error
        if asked.named == "download":
            raise Error("interrupted-download", folder=asked.options.get("directory")) from error
        raise


def _run_command(asked: Invocation, environ: Mapping[str, str]) -> int:
    from ..messages.catalog import load_texts
    from .alive import signs_of_life
    from .console import print_notice, print_over, user_language

    row, request, options = COMMANDS[asked.command], asked.request, asked.options
    if row.looks and not {"facts", "from_text"} & options.keys():
        from .described import start_looking

        request = made(request, {"processes": start_looking(asked.machine, environ)})
    if row.adds_rows and "forget" not in options:
        from .matrix_files import use_matrix_files

        use_matrix_files(options.get("matrix", ()), environ)
    module, language = import_module(row.module), user_language(environ)
    if row.starts or "json" in options:  # its output is another program's, or for one
        return int(module.run(request, environ, language))
    with signs_of_life(lambda: load_texts(language), print_notice, print_over):
        return int(module.run(request, environ, language))
