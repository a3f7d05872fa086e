"""The plan as values: what is wrong, which wheels work here, and what to install and uninstall."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ..facts.driver import EXPLAINED_ERRORS
from ..facts.model import Unknown, is_onnxruntime
from ..matrix.model import AddedRows
from ..matrix.torch import TORCH
from .reasons import Consumer, Finding, Named, Reason, RequirementLine
from .wheels import Companion, Wheel

SHADOWED = "onnxruntime-shadowed"
COMMAND_ELSEWHERE = "command-elsewhere"
IN_FRONT = frozenset({SHADOWED, COMMAND_ELSEWHERE})
"""The findings that programs run with another onnxruntime than the environment's."""
TENSORRT_COSTS_CUDA = "tensorrt-costs-cuda"
"""The finding that a session which asks for TensorRT runs on the CPU."""
NO_DRIVER = frozenset({"driver-unreadable", "mig-without-instance", *EXPLAINED_ERRORS.values()})
"""The findings that the driver does not work."""
UNFIXABLE = IN_FRONT | NO_DRIVER | {TENSORRT_COSTS_CUDA}
"""The errors that no change of the environment fixes, and that leave a plan possible."""
ALLOWANCES = {
    "conda-environment": "conda",
    "pixi-environment": "conda",
    "externally-managed": "system",
    "would-conflict": "conflicts",
    "cuda-lost": "provider",
    "provider-lost": "provider",
    "training-lost": "provider",
}
"""What `--allow` has to name where a finding says that `--apply` refuses."""
REMOVAL_BLOCKERS = {
    "conda": "installed-conda",
    "pixi": "installed-pixi",
    "editable": "installed-editable",
}
"""The findings that only the user can remove what has to go, by what holds it."""
MANUAL_STEPS = frozenset({*REMOVAL_BLOCKERS.values(), "environment-read-only"})
"""The findings of what the user has to do before `--apply` does a plan."""
Where = Literal["here", "there", "new", "new-there"]
"""The environment of a plan: one here, one of another machine, and either still to be made."""
PlanVerdict = Literal["healthy", "fixable", "impossible", "unknown"]
"""`unknown`: the driver or the GPUs are not known, and the plan has a case for each."""
Need = Literal["torch", "conflicts"]
"""What has to be allowed: that torch changes, and that packages lack what they require."""
NEEDED_FLAGS: Mapping[Need, tuple[str, str]] = {
    "torch": ("--torch", "match"),
    "conflicts": ("--allow", "conflicts"),
}
"""The flags that allow it."""


class Rejected(NamedTuple):
    """A release that does not work here."""

    package: str
    version: str
    machine: tuple[Reason, ...] = ()
    """What the machine and its Python exclude, whatever is installed."""
    environment: tuple[Reason, ...] = ()
    """What is installed, or asked for, excludes: but for that, it works on this machine."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return all reasons, those of the machine first."""
        return (*self.machine, *self.environment)

    @property
    def blockers(self) -> tuple[Named | RequirementLine, ...]:
        """Return what of the environment excludes it: distributions, and lines of the user's."""
        return tuple(dict.fromkeys(by for why in self.environment for by in why.by))


class Unlock(NamedTuple):
    """What would allow a newer release: one change, or up to three together."""

    changes: tuple[Reason, ...]
    gains: tuple[Named, ...]
    """`onnxruntime-gpu 1.31.1`, and the torch that comes with it."""
    of: str = ""
    """`CUDA 12`, `Jetson`: for whom a build is whose version is not known."""
    latest: bool = False
    """Only `--ort latest` takes it: without, another release that works goes before it."""
    url: str = ""
    """The index to read first: what it has is not known."""

    @property
    def change(self) -> Reason:
        """The first of the changes; the only one of most."""
        return self.changes[0]


class Alternative(NamedTuple):
    """Another provider of the GPU, which the plan does not take."""

    provider: str
    """What `--provider` names: `tensorrt-rtx`."""
    by: Named
    """The distribution with the provider."""
    size: int
    """Bytes of all that it installs."""


class RunsOn(NamedTuple):
    """The machines that a set can serve."""

    driver: str
    """The oldest driver version that runs its CUDA on this system."""
    gpus: tuple[tuple[str, ...], ...]
    """The compute capabilities that all of it has code for, neighbours together, lowest first."""


class DriverRange(NamedTuple):
    """The drivers of a case."""

    since: str | None
    """The oldest driver version; None: any older one than `before`."""
    before: str | None
    """The oldest driver version that is none of them; None: there is none."""

    @property
    def specifier(self) -> str:
        """The range as PEP 440 writes it: `>=525.60.13,<580.65.06`; empty for any driver."""
        ends = (self.since and f">={self.since}", self.before and f"<{self.before}")
        return ",".join(filter(None, ends))


class Case(NamedTuple):
    """What a machine may be, and the plan that it gets then."""

    driver: DriverRange | None
    """None: the driver is known."""
    gpus: tuple[str, ...] | None
    """The compute capabilities that its GPUs may have, lowest first; None: they are known."""
    plan: "Plan"


class Plan(NamedTuple):
    """The plan for one machine. Made by `resolve`."""

    verdict: PlanVerdict
    matrix_date: str
    matrix_digest: str
    """`sha256:…` over the matrix that the plan was made with."""
    findings: tuple[Finding, ...] = ()
    why: tuple[Reason, ...] = ()
    """Why the selection works."""
    cuda: str | None = None
    """The CUDA major of the selection; None where nothing works."""
    selection: tuple[Wheel, ...] = ()
    """All wheels that work together, kept ones included."""
    uninstall: tuple[str, ...] = ()
    """Canonical names of the distributions that nothing replaces."""
    install: tuple[Wheel, ...] = ()
    bytes_saved: int = 0
    """The bytes by which `--prefer small` downloads less than the newest."""
    small: bool = False
    """The wheels are those of `--prefer small`."""
    companions: tuple[Companion, ...] = ()
    placeholder: str = ""
    """The version of the placeholder `onnxruntime`; empty where nothing works."""
    requires: tuple[str, ...] = ()
    """Missing requirements that are not in `install`; uv chooses their versions."""
    consumers: tuple[Consumer, ...] = ()
    """The installed distributions that use CUDA."""
    rejected: tuple[Rejected, ...] = ()
    considered: tuple[str, ...] = ()
    """The versions of onnxruntime-gpu that were judged, newest first; those in `rejected`, too."""
    unlock: tuple[Unlock, ...] = ()
    unused_by: tuple[Named, ...] = ()
    """The applications that will not use the GPU, where no other is installed."""
    needs: tuple[Need, ...] = ()
    """Without what nothing works: the plan is made as if it was allowed."""
    alternatives: tuple[Alternative, ...] = ()
    """Looked for where nothing works, or somebody asks for all."""
    runs_on: RunsOn | None = None
    """Looked for where the driver and the GPUs were named, or somebody asks for all."""
    cases: tuple[Case, ...] = ()
    """Where the verdict is `unknown`."""
    unknown: Unknown | None = None
    """What decides between the cases."""
    matrix_added: tuple[AddedRows, ...] = ()
    """The rows of the matrix that are not the shipped ones."""

    @property
    def unfixable(self) -> tuple[Finding, ...]:
        """Return what keeps programs from the GPU whatever the environment has."""
        return tuple(finding for finding in self.findings if finding.code in UNFIXABLE)

    @property
    def manual_steps(self) -> tuple[Finding, ...]:
        """Return what the user has to do before `--apply` does this plan."""
        return tuple(finding for finding in self.findings if finding.code in MANUAL_STEPS)

    @property
    def allowances(self) -> tuple[str, ...]:
        """Return what `--allow` has to name for `--apply` to do this plan."""
        found = [
            ALLOWANCES[finding.code] for finding in self.findings if finding.code in ALLOWANCES
        ]
        needed = ["conflicts"] if "conflicts" in self.needs else []
        return tuple(dict.fromkeys((*needed, *found)))

    @property
    def works_beside(self) -> Rejected | None:
        """Return the newest release that the machine does not exclude, of those rejected."""
        rejections = (
            rejection
            for rejection in self.rejected
            if rejection.package != TORCH and not rejection.machine
        )
        return next(rejections, None)

    @property
    def build(self) -> Named | None:
        """Return the onnxruntime of the selection: onnxruntime-gpu, or what has its place."""
        wheels = (wheel for wheel in self.selection if is_onnxruntime(wheel.name))
        return next((Named(wheel.name, wheel.version) for wheel in wheels), None)

    @property
    def release(self) -> str | None:
        """Return the release of `build`, or None."""
        return self.build.version if self.build else None
