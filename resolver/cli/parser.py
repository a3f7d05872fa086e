"""The command line: flags, and which function each command is.

What a command needs is imported when it runs, so that `--help` is there at once, and only
after the children that it waits for were started.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..errors import Error

COMMANDS = {
    "verify": "run real inference, with small models or MODEL.onnx, and say what ran where",
    "lock": "write the plan as a lock for a team; with --check FILE: does a lock still hold",
    "download": "fetch everything the plan installs, for this machine or others",
    "explain": "read an error log, name the cause and the remedy",
    "facts": "write what was seen of this machine and environment",
    "undo": "put the environment back to before the last apply",
    "matrix": "show what the matrix holds, and where each row comes from",
}
FORMATS = ("requirements", "pylock", "uv", "dockerfile")
"""Of a lock; the first is the default."""
ALLOWANCES = ("conflicts", "conda", "system", "changed")
PLAN = "plan"
"""What runs without a command."""
LOOKING = frozenset({PLAN, "check", "check_lock", "download", "facts", "lock", "verify"})
"""The commands that begin with a look at this machine."""
LONG = frozenset({"apply", "download", "lock", "undo"})
"""The commands that take long, or much memory."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are this program's own."""

    def error(self, message: str) -> NoReturn:
        """Raise Error `usage` instead of leaving the process."""
        raise Error("usage", problem=message)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=100)


def parser() -> Parser:
    """Return the parser of the whole command line; flags may stand before and after the command."""
    listed = "\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items())
    made = Parser(
        prog="ortgpu-fix",
        usage="ortgpu-fix [COMMAND] [FLAGS]",
        description="Make ONNX Runtime really use the NVIDIA GPU. Without a command: diagnose, and"
        " print the plan.\n\ncommands:\n" + listed,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    made.add_argument(
        "command", nargs="?", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS
    )
    made.add_argument("argument", nargs="?", metavar="", help=argparse.SUPPRESS)
    add = made.add_argument
    add("--dry-run", action="store_true", help="print the plan and change nothing (the default)")
    add("--apply", action="store_true", help="do the plan, verify it, undo it if it fails")
    add("--check", action="store_true", help="exit code only: is the environment still right")
    add("--python", metavar="PATH", help="the environment: an interpreter or a venv folder")
    add(
        "--facts",
        metavar="FILE",
        action="append",
        help="plan for the machine in FILE; several: one plan for all of them",
    )
    add("--with-cpu", action="store_true", help="machines without a GPU get the CPU build")
    add("--driver", metavar="VERSION", help="plan for this driver release; with --gpu")
    add("--gpu", metavar="CC[,CC...]", help="plan for these compute capabilities; with --driver")
    add("--ignore-gpu", metavar="CC", action="append", default=[], help="plan as if not there")
    add("--ort", metavar="SPEC", help="the onnxruntime-gpu you want: 1.26.0, '<1.27', latest")
    add("--cuda", metavar="MAJOR", help="the CUDA major you want: 11, 12, 13")
    add("--torch", metavar="WISH", help="keep (the default), match, or the torch you want: 2.7.1")
    add("-r", "--requirement", metavar="FILE", action="append", default=[], help="respect this too")
    add("--write", action="store_true", help="with --apply: mend the files that -r names, too")
    add("--no-autoload", action="store_true", help="leave loading the libraries to applications")
    add("--no-provide", action="store_true", help="install no stand-in named onnxruntime")
    add("--json", action="store_true", help="one JSON document on stdout")
    add("--verbose", action="store_true", help="every rejected release with every reason")
    add("-o", "--output", metavar="FILE", help="where lock and facts write")
    add(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        metavar="FORMAT",
        help="of the lock: " + ", ".join(FORMATS),
    )
    add(
        "-d",
        "--directory",
        metavar="DIR",
        help="where download puts all wheels, and lock those that are made here",
    )
    add("--yes", action="store_true", help="do not ask")
    add("--forget", action="store_true", help="with undo: free the space that undo needs instead")
    add(
        "--allow",
        metavar="WHAT",
        action="append",
        default=[],
        choices=ALLOWANCES,
        help="apply all the same: conflicts (packages lose what they require),"
        " conda, system (environments that are another tool's), changed (with undo: what something"
        " else changed since)",
    )
    add("--bench", action="store_true", help="with verify: CPU against GPU, and which options")
    add(
        "--shape",
        metavar="NAME=SIZES",
        action="append",
        default=[],
        help="with verify MODEL: the shape of an input, as in x=1x3x640x640; several: try each",
    )
    add("--report", metavar="FILE", help="with verify: write a page (HTML) to send to a colleague")
    add("--offline", action="store_true", help="use no network; with --find-links")
    add("--find-links", metavar="DIR", help="a folder of wheels, looked into first")
    add("--index-url", metavar="URL", help="the package index (default: as pip or uv has it)")
    add("--torch-index-url", metavar="URL", help="a mirror of https://download.pytorch.org/whl")
    add("--text-only", action="store_true", help="with explain: do not look at this machine")
    add("--version", action="version", version=f"ortgpu-fix {__version__}")
    return made


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line.

    Raises Error `usage`, `flags-clash` or `driver-without-gpu`.
    """
    arguments = parser().parse_intermixed_args(argv)
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


def _refuse_measuring(arguments: argparse.Namespace) -> None:
    """Refuse the flags of `verify` elsewhere, and those of a model where there is none."""
    measuring = {"bench": arguments.bench, "report": arguments.report, "shape": arguments.shape}
    for flag, given in measuring.items():
        if given and arguments.command != "verify":
            raise Error("usage", problem=f"--{flag} goes with verify")
    if (arguments.report or arguments.shape) and not (arguments.argument or arguments.bench):
        raise Error("usage", problem="--report and --shape go with verify MODEL.onnx or --bench")


def _refuse_misplaced(arguments: argparse.Namespace) -> None:
    """Refuse flags and arguments that do not go with the command, or with one another."""
    modes = [name for name in ("dry_run", "apply", "check") if getattr(arguments, name)]
    checks_lock = arguments.command == "lock" and modes == ["check"]
    if len(modes) > 1 or (modes and arguments.command and not checks_lock):
        flags = [f"--{mode.replace('_', '-')}" for mode in modes]
        raise Error("flags-clash", flags=", ".join([*filter(None, [arguments.command]), *flags]))
    if arguments.text_only and arguments.command != "explain":
        raise Error("usage", problem="--text-only goes with explain")
    if arguments.forget and arguments.command != "undo":
        raise Error("usage", problem="--forget goes with undo")
    several = len(arguments.facts or ()) > 1
    if several and arguments.torch not in {None, "keep"}:
        raise Error("flags-clash", flags=f"--torch {arguments.torch}, several --facts")
    if arguments.with_cpu and not several:
        raise Error("usage", problem="--with-cpu goes with several --facts")
    if arguments.write and not (arguments.apply and arguments.requirement):
        raise Error("usage", problem="--write goes with --apply and -r FILE")
    if checks_lock and arguments.argument is None:
        raise Error("usage", problem="lock --check needs the FILE of a lock")
    _refuse_measuring(arguments)
    takes_one = arguments.command in {"explain", "matrix", "verify"} or checks_lock
    if arguments.argument is not None and not takes_one:
        raise Error("usage", problem=f"unrecognized arguments: {arguments.argument}")


def run_command(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run the command that `arguments` name and return its exit code; raises what it raises."""
    name = "apply" if arguments.apply else "check" if arguments.check else arguments.command or PLAN
    if arguments.command == "lock" and arguments.check:
        name = "check_lock"
    arguments.processes = None
    if name in LOOKING and arguments.facts is None and not arguments.machines:
        from ..probe.background import start_probe

        arguments.processes = start_probe(arguments.python, environ)
    if arguments.machines and name not in {"lock", "download"}:
        name = "fleet"
    with contextlib.nullcontext() if name in LONG | {"fleet"} else _uncollected():
        from . import console

        command = import_module(f".commands.{name}", __package__)
        code: int = command.run(arguments, environ, console.user_language(environ))
    return code


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
