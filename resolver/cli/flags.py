"""The flags: how each is spelled, and what it takes; guests add flags of their own."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..errors import Error

Options = Mapping[str, Any]
"""The flags that were given, by their fields: a text, a tuple of texts, or True."""
FORMATS = ("requirements", "pylock", "uv", "dockerfile")
"""Of a lock; the first is the default."""
PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows", "windows-arm64")
"""What `--platform` names."""
PLATFORM_SPELLINGS = {
    "linux_x86_64": "linux-x86_64",
    "linux_aarch64": "linux-aarch64",
    "windows_x86_64": "windows",
    "windows-x86_64": "windows",
    "windows_aarch64": "windows-arm64",
    "windows-aarch64": "windows-arm64",
}
"""How else `--platform` is spelled: as documents and messages of this program do."""
SHELLS = ("bash", "zsh", "fish", "powershell")
"""What `--completions` writes for."""
RTX = "tensorrt-rtx"
PROVIDERS = ("cuda", "tensorrt", RTX)
"""What `--provider` names; the first is the default."""
PREFERENCES = ("newest", "small")
ALLOWANCES = ("conflicts", "conda", "system", "provider", "changed")
Heading = Literal["machine", "install", "apply", "sources", "output"]
"""Under which the help shows a flag."""


class Flag(NamedTuple):
    """A flag of the command line."""

    name: str
    """Without dashes: `ignore-gpu`."""
    heading: Heading
    takes: Literal["nothing", "value", "values"]
    metavar: str | None = None
    short: str | None = None
    choices: tuple[str, ...] = ()
    default: str | None = None
    """The value that means the same as none."""
    respelled: Mapping[str, str] = MappingProxyType({})
    """Other spellings of a choice, and the choice."""
    commands: tuple[str, ...] = ()
    """Of a guest's flag, the commands that take it."""

    @property
    def field(self) -> str:
        """The name of its value; `for_`, as Python keeps `for` for itself."""
        return self.name.replace("-", "_") + "_" * iskeyword(self.name)

    @property
    def spellings(self) -> tuple[str, ...]:
        """`-o`, `--output`."""
        return (*((f"-{self.short}",) if self.short else ()), f"--{self.name}")


CORE_FLAGS = (
    Flag("dry-run", "apply", "nothing"),
    Flag("apply", "apply", "nothing"),
    Flag("check", "apply", "nothing"),
    Flag("python", "machine", "value", "PATH"),
    Flag("facts", "machine", "values", "FILE"),
    Flag("driver", "machine", "value", "VERSION"),
    Flag("gpu", "machine", "value", "GPU[,GPU...]"),
    Flag(
        "platform",
        "machine",
        "value",
        "NAME",
        choices=PLATFORMS,
        respelled=PLATFORM_SPELLINGS,
    ),
    Flag("ignore-gpu", "machine", "values", "CC"),
    Flag("ort", "install", "value", "SPEC"),
    Flag("cuda", "install", "value", "MAJOR"),
    Flag("torch", "install", "value", "SPEC"),
    Flag("provider", "install", "value", "NAME", choices=PROVIDERS, default=PROVIDERS[0]),
    Flag("prefer", "install", "value", "WHAT", choices=PREFERENCES),
    Flag("requirement", "install", "values", "FILE", short="r"),
    Flag("write", "apply", "nothing"),
    Flag("no-autoload", "install", "nothing"),
    Flag("no-provide", "install", "nothing"),
    Flag("json", "output", "nothing"),
    Flag("verbose", "output", "nothing", short="v"),
    Flag("quiet", "output", "nothing", short="q"),
    Flag("output", "output", "value", "FILE", short="o"),
    Flag("from-text", "machine", "value", "FILE"),
    Flag("format", "output", "value", "FORMAT", choices=FORMATS, default=FORMATS[0]),
    Flag("directory", "output", "value", "DIR", short="d"),
    Flag("yes", "apply", "nothing"),
    Flag("forget", "apply", "nothing"),
    Flag("allow", "apply", "values", "WHAT", choices=ALLOWANCES),
    Flag("offline", "sources", "nothing"),
    Flag("find-links", "sources", "value", "DIR"),
    Flag("index-url", "sources", "value", "URL"),
    Flag("torch-index-url", "sources", "value", "URL"),
    Flag("tensorrt-index-url", "sources", "value", "URL"),
    Flag("help", "output", "nothing", short="h"),
    Flag("matrix", "sources", "values", "FILE"),
    Flag("version", "output", "nothing", short="V"),
    Flag("completions", "output", "value", "SHELL", choices=SHELLS),
)
SOURCES = ("offline", "find-links", "index-url", "torch-index-url", "tensorrt-index-url")
_TALK = ("json", "verbose", "yes", "help", "version", "completions")
COMMON = ("python", "matrix", *_TALK, *SOURCES)
"""The flags that every command takes, also where one means nothing to it: an alias may add them."""
MACHINE = ("facts", "driver", "gpu", "ignore-gpu")
INSTALL = ("ort", "cuda", "torch", "provider", "requirement", "no-autoload", "no-provide", "allow")


class CommandLine(NamedTuple):
    """What was typed, unchanged: which options can be combined is checked later."""

    command: str
    """Of `guests.COMMANDS`; `plan` where none was typed."""
    named: str | None = None
    """The command as it was typed; None: none was."""
    words: tuple[str, ...] = ()
    """What follows the command: a log, a model, a release."""
    rest: tuple[str, ...] = ()
    """What follows `--`, where that is another program's."""
    options: Options = MappingProxyType({})


def alone(flag: str, *partners: str) -> Error:
    """Return the Error that `flag` means something with one of `partners` alone."""
    named = ", ".join(f"`{partner}`" for partner in partners)
    return Error("usage", problem=Error("flag-alone", flag=flag, partners=named))


def lacking(command: str, what: str, example: str) -> Error:
    """Return the Error that `command` needs `what`, as `example` has it."""
    what = f"`{what}`"
    problem = Error("command-lacks", command=command, what=what, example=example)
    return Error("usage", problem=problem)


def refuse(*rows: tuple[bool, str, str]) -> None:
    """Raise Error `usage` for the first row that is true: its flag needs its partner."""
    for refused, flag, partner in rows:
        if refused:
            raise alone(flag, partner)
