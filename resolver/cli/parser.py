"""The command line: commands, flags, and what goes with what.

What a command needs is imported when it runs, so that `--help` is there at once, and only
after the children that it waits for were started.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..errors import Error
from .flags import FLAGS, RTX, CommandLine, Flag, given

PLAN = "plan"
"""What runs without a command."""
COMMANDS = (
    *("plan", "apply", "check", "undo", "verify", "explain", "run"),
    *("check-image", "diff", "facts", "lock", "download", "matrix", "cache", "help"),
)
RUN = "run"
CACHE = ("dir", "info", "purge")
MODES = ("dry-run", "apply", "check")
"""The flags that are commands, too."""
LOOKING = frozenset({PLAN, "apply", "check", "download", "facts", "lock", "verify"})
"""The commands that begin with a look at this machine."""
TAKING = frozenset(
    {"cache", "check_image", "check_lock", "diff", "explain", "help", "matrix", "verify"}
)
"""The commands that take an argument."""
NEEDING = {"check_image": ("check-image", "PATH"), "check_lock": ("lock --check", "FILE")}
"""The commands that need their argument: as they are typed, and it."""


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
    if word not in COMMANDS:
        raise _unknown(word, COMMANDS)
    return word


def _value_of(flag: Flag) -> Callable[[str], str]:
    """Return the type of a flag that takes a value, one of its choices where it has some.

    An empty one is that of a variable that is not set, and no wish.
    """

    def check(value: str) -> str:
        if not value:
            raise _lacking(f"--{flag.name}")
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
    argv, rest = _own_words(_joined(argv))
    known = [spelling for flag in FLAGS for spelling in flag.spellings]
    for word in argv:  # argparse would complain of the value of such a flag first
        if word.startswith("--") and word.partition("=")[0] not in {*known, "--"}:
            raise _unknown(word.partition("=")[0], known)
    try:
        found, more = parser().parse_known_intermixed_args(argv)
    except argparse.ArgumentError as error:
        raise _without_value(error) from error
    if found.command == RUN and more and not rest:
        raise _alone(RUN, "-- COMMAND")
    if more:
        raise Error("usage", problem=Error("argument-unknown", given=more[0]))
    if "" in {found.argument, *found.others}:
        raise _lacking(found.command)
    values = {name: value for name, value in vars(found).items() if value}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    line = CommandLine(**values | lists, rest=rest)
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
            raise _alone(f"--{flag.name}", flag.partner)
    _check_partners(line, command)
    _check_plugin(line, command)
    _check_libraries(line)
    command = "check_lock" if locks else "matrix_update" if line.update else command
    command = command.replace("-", "_")
    if command == RUN and not line.rest:
        raise _alone(RUN, "-- COMMAND")
    _check_arguments(line, command)
    apply, check = command == "apply", command in {"check", "check_lock"}
    return line._replace(named=named, command=command, apply=apply, check=check)


def _check_arguments(line: CommandLine, command: str) -> None:
    """Refuse what follows a command that takes nothing, and commands that lack it."""
    if line.argument is not None and command not in TAKING:
        raise Error("usage", problem=Error("argument-unknown", given=line.argument))
    superfluous = line.others[command == "diff" :]
    if superfluous and command != "explain":
        raise Error("usage", problem=Error("argument-unknown", given=superfluous[0]))
    if command == "diff" and not line.others:
        raise _alone("diff", "OLD NEW")
    if line.argument is None and command in NEEDING:
        raise _alone(*NEEDING[command])
    if command == "cache" and (line.argument or "info") not in CACHE:
        raise _unknown(line.argument or "", CACHE)
    if command == "help" and line.argument is not None:
        _known_command(line.argument)


def _alone(flag: str, partner: str) -> Error:
    """Return the Error that `flag` needs `partner`."""
    return Error("usage", problem=Error("flag-alone", flag=flag, partner=partner))


def _check_plugin(line: CommandLine, command: str) -> None:
    """Refuse a plugin's provider where the set is one of onnxruntime-gpu."""
    for clash, refused in (("lock", command == "lock"), ("several --facts", bool(line.machines))):
        if refused and line.provider == RTX:
            raise Error("flags-clash", flags=f"--provider {RTX}, {clash}")


def _check_libraries(line: CommandLine) -> None:
    """Refuse what means nothing to a program that is not Python."""
    if line.for_ and not line.libraries:
        raise _alone("--for", "download --libraries")
    of_python = _given(line, "python", "torch", "requirement", "with-cpu")
    of_python = of_python or ("several --facts" if line.machines else "")
    of_python = of_python or _given(line, "provider") * (line.provider != "cuda")
    if line.libraries and of_python:
        raise Error("flags-clash", flags=f"--libraries, {of_python}")
    if line.for_ and line.ort:
        raise Error("flags-clash", flags="--for, --ort")


def _given(line: CommandLine, *names: str) -> str:
    """Return those of these flags that were given: `--report, --shape`."""
    return ", ".join(f"--{name}" for name in names if getattr(line, name.replace("-", "_")))


def _check_partners(line: CommandLine, command: str) -> None:
    """Refuse flags that need another one, or exclude one."""
    several = bool(line.machines)
    model = line.argument or line.bench
    if several and line.torch not in {None, "keep"}:
        raise Error("flags-clash", flags=f"--torch {line.torch}, several --facts")
    measuring = _given(line, "report", "shape")
    reading = _given(line, "all-platforms", "ort-index-url")
    lacking = (
        (command == "run" and line.output and not line.json, "--output", "--json"),
        (line.with_cpu and not several, "--with-cpu", "--facts FILE --facts FILE"),
        (
            line.write and not (command == "apply" and line.requirement),
            "--write",
            "--apply -r FILE",
        ),
        (measuring and not model, measuring, "verify MODEL.onnx, verify --bench"),
        (reading and not line.update, reading, "matrix --update"),
    )
    for refused, flag, partner in lacking:
        if refused:
            raise _alone(flag, partner)
    for flag, clash in (
        ("update", "offline"),
        ("update", "forget"),
    ):
        if getattr(line, flag) and getattr(line, clash):
            raise Error("flags-clash", flags=f"--{flag}, --{clash.replace('_', '-')}")
    described = _given(line, "facts", "driver", "python", "platform")
    if line.from_text and described:
        raise Error("flags-clash", flags=f"--from-text, {described}")
    if (line.driver is None) != (line.gpu is None):
        raise Error("driver-without-gpu")
    if line.driver is not None and line.facts:
        raise Error("flags-clash", flags="--driver, --facts")
    if line.platform is not None and line.driver is None:
        raise _alone("--platform", "--driver VERSION --gpu GPU")


def run_command(line: CommandLine, environ: Mapping[str, str]) -> int:
    """Run the command of `line` and return its exit code; raises what it raises.

    Ctrl-C is told as an Error where a user asks himself what has been done.
    """
    try:
        return _run_command(line, environ)
    except KeyboardInterrupt as error:
        if line.command == "apply":
            raise Error("interrupted") from error
        if line.command == "download":
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
    if line.command in LOOKING and not line.facts and not line.from_text:
        from .described import start_looking

        line = line._replace(processes=start_looking(line, environ))
    from .matrix_files import use_matrix_files

    if line.command not in {"cache", "matrix_update", RUN, "undo"} and not line.forget:
        use_matrix_files(line, environ)
    several = line.machines and line.command not in {"lock", "download", "check_image", "diff"}
    module = import_module(f".commands.{'fleet' if several else line.command}", __package__)
    code: int = module.run(line, environ, console.user_language(environ))
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
