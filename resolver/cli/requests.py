"""What a command is asked to do: the flags that it takes, as small records.

The command line becomes one of these at the door; what is further inside gets the values that it
needs.
"""

from __future__ import annotations

from os.path import isdir
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from .flags import FORMATS, PROVIDERS, Options

if TYPE_CHECKING:  # `--help` is there without them
    from ..probe.background import ProbeProcesses

Request = TypeVar("Request", bound=tuple[Any, ...])
EnvironmentUse = Literal["needed", "planned", "described", "optional", "none"]
"""What a command needs of an environment, where none is named.

`needed`: one that is there. `planned`: a new one will do where this program is alone in its own;
`described`: where flags describe the machine; `optional`: in both cases, and on this machine.
`none`: none at all.
"""


class MachineOptions(NamedTuple):
    """The machine and the environment that a command is for."""

    environment: EnvironmentUse = "needed"
    python: str | None = None
    facts: tuple[str, ...] = ()
    driver: str | None = None
    gpu: str | None = None
    platform: str | None = None
    processes: ProbeProcesses | None = None
    """The children that look at this machine, where they have been started."""

    @property
    def facts_file(self) -> str | None:
        """The one facts file; None where there is none, or several."""
        return self.facts[0] if len(self.facts) == 1 and not self.several else None

    @property
    def several(self) -> tuple[str, ...]:
        """The facts files, where there are several; a directory of them is several, too."""
        return several_files(self.facts)

    @property
    def elsewhere(self) -> bool:
        """Whether the plan is for another machine than this one."""
        return bool(self.facts) or self.driver is not None


def several_files(facts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of `--facts` where they are several machines, else nothing."""
    return facts if len(facts) > 1 or any(map(isdir, facts)) else ()


class InstallOptions(NamedTuple):
    """What a plan must respect."""

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
    allow: tuple[str, ...] = ()


class SourceOptions(NamedTuple):
    """Where packages come from."""

    offline: bool = False
    find_links: str | None = None
    index_url: str | None = None
    torch_index_url: str | None = None
    tensorrt_index_url: str | None = None


class PlanRequest(NamedTuple):
    """Make a plan and show it."""

    machine: MachineOptions = MachineOptions()
    install: InstallOptions = InstallOptions()
    sources: SourceOptions = SourceOptions()
    json: bool = False
    verbose: bool = False
    options: Options = MappingProxyType({})
    """What was given, for the commands that the output shows."""


class ApplyRequest(NamedTuple):
    """Carry out a plan."""

    plan: PlanRequest = PlanRequest()
    yes: bool = False


class CheckRequest(NamedTuple):
    """Say whether an environment is OK."""

    plan: PlanRequest = PlanRequest()
    quiet: bool = False


class UndoRequest(NamedTuple):
    """Put an environment back, or forget how it was."""

    python: str | None = None
    forget: bool = False
    allow: tuple[str, ...] = ()
    yes: bool = False
    json: bool = False


class VerifyRequest(NamedTuple):
    """Run inference in an environment."""

    machine: MachineOptions = MachineOptions()
    provider: str = PROVIDERS[0]
    ignore_gpu: tuple[str, ...] = ()
    json: bool = False
    options: Options = MappingProxyType({})


class FactsRequest(NamedTuple):
    """Write down a machine and an environment."""

    plan: PlanRequest = PlanRequest()
    from_text: str | None = None
    output: str | None = None


class LockRequest(NamedTuple):
    """Write a plan as a lock."""

    plan: PlanRequest = PlanRequest()
    output: str | None = None
    format: str = FORMATS[0]
    directory: str | None = None

    @property
    def preferred(self) -> PlanRequest:
        """The plan: where nobody says so, the smallest for an image, which is sent to each host."""
        if self.format != "dockerfile" or self.plan.install.prefer:
            return self.plan
        return self.plan._replace(install=self.plan.install._replace(prefer="small"))


class DownloadRequest(NamedTuple):
    """Fetch what a plan installs."""

    plan: PlanRequest = PlanRequest()
    directory: str | None = None


class MatrixRequest(NamedTuple):
    """Show the matrix, or drop what was added to it."""

    words: tuple[str, ...] = ()
    """A version, where one is asked for."""
    driver: str | None = None
    gpu: str | None = None
    forget: bool = False
    json: bool = False


class CacheRequest(NamedTuple):
    """Show what is kept, or remove it."""

    words: tuple[str, ...] = ()
    """What to do."""
    json: bool = False


class HelpRequest(NamedTuple):
    """Show the help of a command, the version, or the completions of a shell."""

    command: str | None = None
    """None: of the whole program."""
    full: bool = True
    version: bool = False
    completions: str | None = None


def made(request: Request, values: Options) -> Request:
    """Return `request` with the `values` of its fields, and of those of the records in it."""
    fields: tuple[str, ...] = request._fields  # type: ignore[attr-defined]
    changed = {
        name: made(value, values) if hasattr(value, "_fields") else values.get(name, value)
        for name, value in zip(fields, request, strict=True)
    }
    return request._replace(**changed)  # type: ignore[attr-defined,no-any-return]
