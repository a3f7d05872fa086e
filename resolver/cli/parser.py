"""The command line: flags, and which function each command is.

What a command needs is imported when it runs, so that `--help` is there at once, and only
after the children that it waits for were started.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import difflib
import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..errors import Error

COMMANDS = ("verify", "lock", "download", "explain", "facts", "undo", "matrix", "cache")
CACHE = ("dir", "info", "purge")
FORMATS = ("requirements", "pylock", "uv", "dockerfile")
"""Of a lock; the first is the default."""
ALLOWANCES = ("conflicts", "conda", "system", "changed")
PLAN = "plan"
"""What runs without a command."""
LOOKING = frozenset({PLAN, "apply", "check", "check_lock", "download", "facts", "lock", "verify"})
"""The commands that begin with a look at this machine."""
LONG = frozenset({"apply", "download", "lock", "matrix_update", "undo"})
"""The commands that take long, or much memory."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are this program's own, in the user's language."""

    def refuse_unknown_flags(self, argv: Sequence[str]) -> None:
        """Raise Error `usage`; argparse would complain of the value of such a flag first."""
        known = self._option_string_actions
        for word in argv:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in known:
                raise Error("usage", problem=_unknown(flag, list(known)))

    def error(self, message: str) -> NoReturn:
        """Raise Error `usage` instead of leaving the process."""
        kind, _, rest = message.partition(": ")
        if kind == "unrecognized arguments":
            problem = Error("argument-unknown", given=rest.partition(" ")[0])
            raise Error("usage", problem=problem)
        flag = kind.removeprefix("argument ").rpartition("/")[2]
        choice = re.match(r"invalid choice: '(.*)' \(choose from", rest)
        if choice and flag == "COMMAND":
            raise Error("usage", problem=_unknown(choice[1], COMMANDS))
        if choice:
            choices = ", ".join(self._option_string_actions[flag].choices or ())
            problem = Error("value-unknown", flag=flag, value=choice[1], choices=choices)
            raise Error("usage", problem=problem)
        if rest == "expected one argument":
            raise Error("usage", problem=Error("value-missing", flag=flag))
        raise Error("usage", problem=message)


def _unknown(given: str, known: Sequence[str]) -> Error:
    """Say that nobody knows `given`, and what it is near to."""
    near = difflib.get_close_matches(given, known, n=1)
    if near:
        return Error("argument-unknown-near", given=given, near=near[0])
    return Error("argument-unknown", given=given)


def parser() -> Parser:
    """Return the parser of the whole command line; flags may stand before and after the command."""
    made = Parser(prog="ortgpu-fix", add_help=False, allow_abbrev=False)
    made.add_argument("command", nargs="?", choices=COMMANDS, metavar="COMMAND")
    made.add_argument("argument", nargs="?", metavar="")
    add = made.add_argument
    add("--dry-run", action="store_true")
    add("--apply", action="store_true")
    add("--check", action="store_true")
    add("--python", metavar="PATH")
    add("--facts", metavar="FILE", action="append")
    add("--with-cpu", action="store_true")
    add("--driver", metavar="VERSION")
    add("--gpu", metavar="GPU[,GPU...]")
    add("--ignore-gpu", metavar="CC", action="append", default=[])
    add("--ort", metavar="SPEC")
    add("--cuda", metavar="MAJOR")
    add("--torch", metavar="WISH")
    add("-r", "--requirement", metavar="FILE", action="append", default=[])
    add("--write", action="store_true")
    add("--no-autoload", action="store_true")
    add("--no-provide", action="store_true")
    add("--json", action="store_true")
    add("--verbose", action="store_true")
    add("-o", "--output", metavar="FILE")
    add("--format", choices=FORMATS, default=FORMATS[0], metavar="FORMAT")
    add("-d", "--directory", metavar="DIR")
    add("--yes", action="store_true")
    add("--forget", action="store_true")
    add("--allow", metavar="WHAT", action="append", default=[], choices=ALLOWANCES)
    add("--bench", action="store_true")
    add("--shape", metavar="NAME=SIZES", action="append", default=[])
    add("--report", metavar="FILE")
    add("--offline", action="store_true")
    add("--find-links", metavar="DIR")
    add("--index-url", metavar="URL")
    add("--torch-index-url", metavar="URL")
    add("--text-only", action="store_true")
    add("-h", "--help", action="store_true")
    add("--update", action="store_true")
    add("--all-platforms", action="store_true")
    add("--ort-index-url", metavar="URL")
    add("--matrix", metavar="FILE", action="append", default=[])
    add("--version", action="version", version=f"ortgpu-fix {__version__}")
    return made


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line.

    Raises Error `usage`, `flags-clash` or `driver-without-gpu`.
    """
    made = parser()
    made.refuse_unknown_flags(argv)
    arguments = made.parse_intermixed_args(argv)
    if arguments.help:
        return arguments
    _refuse_misplaced(arguments)
    if (arguments.driver is None) != (arguments.gpu is None):
        raise Error("driver-without-gpu")
    if arguments.driver is not None and arguments.facts is not None:
        raise Error("flags-clash", flags="--driver, --facts")
    arguments.machines = []
    if arguments.facts is not None and len(arguments.facts) > 1:
        arguments.machines, arguments.facts = arguments.facts, None
    elif arguments.facts is not None:
        [arguments.facts] = arguments.facts
    return arguments


def _alone(flag: str, partner: str) -> Error:
    """Say that `flag` needs `partner`."""
    return Error("usage", problem=Error("flag-alone", flag=flag, partner=partner))


def _refuse_measuring(arguments: argparse.Namespace) -> None:
    """Refuse the flags of `verify` elsewhere, and those of a model where there is none."""
    measuring = {"bench": arguments.bench, "report": arguments.report, "shape": arguments.shape}
    for flag, given in measuring.items():
        if given and arguments.command != "verify":
            raise _alone(f"--{flag}", "verify")
    if (arguments.report or arguments.shape) and not (arguments.argument or arguments.bench):
        raise _alone("--report, --shape", "verify MODEL.onnx, verify --bench")


def _refuse_updating(arguments: argparse.Namespace) -> None:
    """Refuse the flags of `matrix --update` elsewhere."""
    if arguments.update and arguments.command != "matrix":
        raise _alone("--update", "matrix")
    if (arguments.all_platforms or arguments.ort_index_url) and not arguments.update:
        raise _alone("--all-platforms, --ort-index-url", "matrix --update")
    if arguments.update and arguments.offline:
        raise Error("flags-clash", flags="--update, --offline")


def _refuse_misplaced(arguments: argparse.Namespace) -> None:
    """Refuse flags and arguments that do not go with the command, or with one another."""
    modes = [name for name in ("dry_run", "apply", "check") if getattr(arguments, name)]
    checks_lock = arguments.command == "lock" and modes == ["check"]
    if len(modes) > 1 or (modes and arguments.command and not checks_lock):
        flags = [f"--{mode.replace('_', '-')}" for mode in modes]
        raise Error("flags-clash", flags=", ".join([*filter(None, [arguments.command]), *flags]))
    if arguments.text_only and arguments.command != "explain":
        raise _alone("--text-only", "explain")
    if arguments.forget and arguments.command != "undo":
        raise _alone("--forget", "undo")
    several = len(arguments.facts or ()) > 1
    if several and arguments.torch not in {None, "keep"}:
        raise Error("flags-clash", flags=f"--torch {arguments.torch}, several --facts")
    if arguments.with_cpu and not several:
        raise _alone("--with-cpu", "--facts FILE --facts FILE")
    if arguments.write and not (arguments.apply and arguments.requirement):
        raise _alone("--write", "--apply -r FILE")
    if checks_lock and arguments.argument is None:
        raise _alone("lock --check", "FILE")
    _refuse_measuring(arguments)
    _refuse_updating(arguments)
    if arguments.command == "cache" and (arguments.argument or "info") not in CACHE:
        raise Error("usage", problem=_unknown(arguments.argument, CACHE))
    takes_one = arguments.command in {"cache", "explain", "matrix", "verify"} or checks_lock
    if arguments.argument is not None and not takes_one:
        raise Error("usage", problem=Error("argument-unknown", given=arguments.argument))


def run_command(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run the command that `arguments` name and return its exit code; raises what it raises."""
    if arguments.help:
        _print_help(arguments, environ)
        return 0
    name = "apply" if arguments.apply else "check" if arguments.check else arguments.command or PLAN
    if arguments.command == "lock" and arguments.check:
        name = "check_lock"
    if arguments.update:
        name = "matrix_update"
    arguments.processes = None
    if name in LOOKING and arguments.facts is None and not arguments.machines:
        from ..probe.background import start_probe

        arguments.processes = start_probe(arguments.python, environ)
    if arguments.machines and name not in {"lock", "download"}:
        name = "fleet"
    with contextlib.nullcontext() if name in LONG | {"fleet"} else _uncollected():
        from . import console
        from .matrix_files import use_matrix_files

        if name not in {"cache", "matrix_update", "undo"}:
            use_matrix_files(arguments, environ)
        command = import_module(f".commands.{name}", __package__)
        code: int = command.run(arguments, environ, console.user_language(environ))
    return code


def _print_help(arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
    from ..data_files import load_table
    from . import console
    from .help import COLUMNS, help_text

    command = arguments.command
    if command is None and (arguments.apply or arguments.check or arguments.dry_run):
        command = PLAN
    language = console.user_language(environ)
    table, columns = load_table("help"), console.columns(COLUMNS)
    console.print_result(help_text(parser(), command, table, language, columns))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Let no garbage be collected in what is soon over, nor at the end of the process.

    Each takes up to a tenth of a plan's time.
    """
    collected = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if collected:
            gc.enable()
