"""The flags of the core, and a command line with its values; guests add flags of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from keyword import iskeyword
from os.path import isdir
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from ..errors import Error

if TYPE_CHECKING:  # `--help` is there without them
    from ..probe.background import ProbeProcesses

Request = TypeVar("Request")
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
ALLOWANCES = ("conflicts", "conda", "system", "provider", "changed")


class Flag(NamedTuple):
    """A flag of the command line."""

    name: str
    """Without dashes: `ignore-gpu`."""
    takes: Literal["nothing", "value", "values"]
    metavar: str | None = None
    short: str | None = None
    choices: tuple[str, ...] = ()
    respelled: Mapping[str, str] = MappingProxyType({})
    """Other spellings of a choice, and the choice."""
    commands: tuple[str, ...] = ()
    """The commands that take it; none named: all do, also where it means nothing to one."""
    partner: str = ""
    """What it goes with, as a user reads it, where `commands` names some."""

    @property
    def field(self) -> str:
        """The name of its value in `CommandLine`; `for_`, as Python keeps `for` for itself."""
        return self.name.replace("-", "_") + "_" * iskeyword(self.name)

    @property
    def spellings(self) -> tuple[str, ...]:
        """`-o`, `--output`."""
        return (*((f"-{self.short}",) if self.short else ()), f"--{self.name}")


PREFERENCES = ("newest", "small")
_SETS = ("plan", "apply", "lock", "download")
_NEW = ("plan", "lock", "download", "facts", "explain")
CORE_FLAGS = (
    Flag("dry-run", "nothing"),
    Flag("apply", "nothing"),
    Flag("check", "nothing"),
    Flag("python", "value", "PATH"),
    Flag("facts", "values", "FILE"),
    Flag("driver", "value", "VERSION"),
    Flag("gpu", "value", "GPU[,GPU...]"),
    Flag(
        "platform",
        "value",
        "NAME",
        choices=PLATFORMS,
        respelled=PLATFORM_SPELLINGS,
        commands=_NEW,
        partner=", ".join(_NEW),
    ),
    Flag("ignore-gpu", "values", "CC"),
    Flag("ort", "value", "SPEC"),
    Flag("cuda", "value", "MAJOR"),
    Flag("torch", "value", "WISH"),
    Flag("provider", "value", "NAME", choices=PROVIDERS),
    Flag("prefer", "value", "WHAT", choices=PREFERENCES, commands=_SETS, partner=", ".join(_SETS)),
    Flag("requirement", "values", "FILE", short="r"),
    Flag("write", "nothing"),
    Flag("no-autoload", "nothing"),
    Flag("no-provide", "nothing"),
    Flag("json", "nothing"),
    Flag("verbose", "nothing", short="v"),
    Flag("output", "value", "FILE", short="o"),
    Flag("from-text", "value", "FILE", commands=("facts",), partner="facts"),
    Flag("format", "value", "FORMAT", choices=FORMATS),
    Flag("directory", "value", "DIR", short="d"),
    Flag("yes", "nothing"),
    Flag("forget", "nothing", commands=("undo", "matrix"), partner="undo, matrix"),
    Flag("allow", "values", "WHAT", choices=ALLOWANCES),
    Flag("offline", "nothing"),
    Flag("find-links", "value", "DIR"),
    Flag("index-url", "value", "URL"),
    Flag("torch-index-url", "value", "URL"),
    Flag("tensorrt-index-url", "value", "URL"),
    Flag("help", "nothing", short="h"),
    Flag("matrix", "values", "FILE"),
    Flag("version", "nothing", short="V"),
    Flag("completions", "value", "SHELL", choices=SHELLS),
)


class CommandLine(NamedTuple):
    """A command and its flags, as they were given. Made by `parse`.

    A flag that was not given is False, None or empty.
    """

    command: str = "plan"
    """The module in `commands/` that runs: `plan`, `check_lock`."""
    named: str | None = None
    """The command as it was typed; None: none was."""
    argument: str | None = None
    """What follows the command: a log, a model, a release."""
    others: tuple[str, ...] = ()
    """What follows that: of `diff` the new state, of `explain` more logs."""
    rest: tuple[str, ...] = ()
    """What follows `--`."""
    dry_run: bool = False
    apply: bool = False
    check: bool = False
    python: str | None = None
    facts: tuple[str, ...] = ()
    driver: str | None = None
    gpu: str | None = None
    platform: str | None = None
    ignore_gpu: tuple[str, ...] = ()
    ort: str | None = None
    cuda: str | None = None
    torch: str | None = None
    provider: str = PROVIDERS[0]
    prefer: str | None = None
    requirement: tuple[str, ...] = ()
    write: bool = False
    no_autoload: bool = False
    no_provide: bool = False
    json: bool = False
    verbose: bool = False
    output: str | None = None
    from_text: str | None = None
    format: str = FORMATS[0]
    directory: str | None = None
    yes: bool = False
    forget: bool = False
    allow: tuple[str, ...] = ()
    offline: bool = False
    find_links: str | None = None
    index_url: str | None = None
    torch_index_url: str | None = None
    tensorrt_index_url: str | None = None
    help: bool = False
    matrix: tuple[str, ...] = ()
    version: bool = False
    completions: str | None = None
    of_guests: Mapping[str, Any] = MappingProxyType({})
    """The values of the flags that guests add, by their fields."""
    processes: ProbeProcesses | None = None
    """The children that look at this machine, where they have been started."""

    def request(self, kind: Callable[..., Request]) -> Request:
        """Return the flags of a guest as its own record; what was not given has its default."""
        fields = getattr(kind, "_fields", ())
        return kind(**{name: self.of_guests[name] for name in fields if name in self.of_guests})

    @property
    def facts_file(self) -> str | None:
        """The one facts file; None where there is none, or several."""
        return self.facts[0] if len(self.facts) == 1 and not self.machines else None

    @property
    def machines(self) -> tuple[str, ...]:
        """The facts files, where there are several; a directory of them is several, too."""
        return self.facts if len(self.facts) > 1 or any(map(isdir, self.facts)) else ()

    @property
    def elsewhere(self) -> bool:
        """Whether the plan is for another machine than this one."""
        return bool(self.facts) or self.driver is not None


def given(line: CommandLine, flag: Flag) -> Any:  # noqa: ANN401 - each flag has its own type
    """Return the value of `flag`; false where it was not given, or is the default."""
    if flag.field not in CommandLine._fields:
        return line.of_guests.get(flag.field)
    value = getattr(line, flag.field)
    return None if value == CommandLine._field_defaults[flag.field] else value


def alone(flag: str, partner: str) -> Error:
    """Return the Error that `flag` needs `partner`."""
    return Error("usage", problem=Error("flag-alone", flag=flag, partner=partner))


def refuse(*rows: tuple[bool, str, str]) -> None:
    """Raise Error `usage` for the first row that is true: its flag needs its partner."""
    for refused, flag, partner in rows:
        if refused:
            raise alone(flag, partner)
