"""The flags of the command line: one list, from which everything that concerns them is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:  # `--help` is there without them
    from ..probe.background import ProbeProcesses

FORMATS = ("requirements", "pylock", "uv", "dockerfile")
"""Of a lock; the first is the default."""
PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows")
"""What `--platform` names."""
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
    commands: tuple[str, ...] = ()
    """The commands that take it; none named: all do, also where it means nothing to one."""
    partner: str = ""
    """What it goes with, as a user reads it, where `commands` names some."""

    @property
    def field(self) -> str:
        """The name of its value in `CommandLine`: `for_`, as Python keeps `for` for itself."""
        return "for_" if self.name == "for" else self.name.replace("-", "_")

    @property
    def spellings(self) -> tuple[str, ...]:
        """`-o`, `--output`."""
        return (*((f"-{self.short}",) if self.short else ()), f"--{self.name}")


PREFERENCES = ("newest", "small")
_SETS = ("plan", "apply", "lock", "download")
_REPORTS = ("verify", "check-image")
_NEW = ("plan", "lock", "download", "facts", "explain")
FLAGS = (
    Flag("dry-run", "nothing"),
    Flag("apply", "nothing"),
    Flag("check", "nothing"),
    Flag("python", "value", "PATH"),
    Flag("facts", "values", "FILE"),
    Flag("with-cpu", "nothing"),
    Flag("driver", "value", "VERSION"),
    Flag("gpu", "value", "GPU[,GPU...]"),
    Flag("platform", "value", "NAME", choices=PLATFORMS, commands=_NEW, partner=", ".join(_NEW)),
    Flag("hosts", "values", "FACTS", commands=("diff",), partner="diff"),
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
    Flag("libraries", "nothing", commands=("download",), partner="download"),
    Flag("for", "value", "PATH", commands=("download",), partner="download --libraries"),
    Flag("yes", "nothing"),
    Flag("forget", "nothing", commands=("undo", "matrix"), partner="undo, matrix"),
    Flag("allow", "values", "WHAT", choices=ALLOWANCES),
    Flag("bench", "nothing", commands=("verify",), partner="verify"),
    Flag("shape", "values", "NAME=SIZES", commands=("verify",), partner="verify"),
    Flag("report", "value", "FILE", commands=_REPORTS, partner=", ".join(_REPORTS)),
    Flag("require-gpu", "nothing", commands=("run",), partner="run -- COMMAND"),
    Flag("live", "nothing", commands=("run",), partner="run -- COMMAND"),
    Flag("offline", "nothing"),
    Flag("find-links", "value", "DIR"),
    Flag("index-url", "value", "URL"),
    Flag("torch-index-url", "value", "URL"),
    Flag("tensorrt-index-url", "value", "URL"),
    Flag("text-only", "nothing", commands=("explain",), partner="explain"),
    Flag("help", "nothing", short="h"),
    Flag("update", "nothing", commands=("matrix",), partner="matrix"),
    Flag("all-platforms", "nothing"),
    Flag("ort-index-url", "value", "URL"),
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
    with_cpu: bool = False
    driver: str | None = None
    gpu: str | None = None
    platform: str | None = None
    hosts: tuple[str, ...] = ()
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
    libraries: bool = False
    for_: str | None = None
    yes: bool = False
    forget: bool = False
    allow: tuple[str, ...] = ()
    bench: bool = False
    shape: tuple[str, ...] = ()
    report: str | None = None
    require_gpu: bool = False
    live: bool = False
    offline: bool = False
    find_links: str | None = None
    index_url: str | None = None
    torch_index_url: str | None = None
    tensorrt_index_url: str | None = None
    text_only: bool = False
    help: bool = False
    update: bool = False
    all_platforms: bool = False
    ort_index_url: str | None = None
    matrix: tuple[str, ...] = ()
    version: bool = False
    completions: str | None = None
    processes: ProbeProcesses | None = None
    """The children that look at this machine, where they have been started."""

    @property
    def facts_file(self) -> str | None:
        """The one facts file; None where there is none, or several."""
        return self.facts[0] if len(self.facts) == 1 else None

    @property
    def machines(self) -> tuple[str, ...]:
        """The facts files, where there are several."""
        return self.facts if len(self.facts) > 1 else ()

    @property
    def elsewhere(self) -> bool:
        """Whether the plan is for another machine than this one."""
        return bool(self.facts) or self.driver is not None


def given(line: CommandLine, flag: Flag) -> Any:  # noqa: ANN401 - each flag has its own type
    """Return the value of `flag`; false where it was not given, or is the default."""
    value = getattr(line, flag.field)
    return None if value == CommandLine._field_defaults[flag.field] else value
