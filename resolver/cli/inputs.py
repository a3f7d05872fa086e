"""The inputs of a plan: facts of the machine and the environment, options, and the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Error, cause
from ..facts.model import Facts, Unknown
from ..facts.target import Target, in_environment
from ..matrix.load import add_torch, load_matrix
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..plan.model import Where
from ..probe.machine import target_of
from ..resolve.options import PlanOptions
from ..resolve.torch_choice import torch_of_lines
from ..utils.process import run
from .described import describes_environment, in_new_environment, on_described_machine
from .facts_files import read_facts
from .machine import (
    probe_machine,
    require_platform,
    with_surroundings,
    with_unknown_releases,
)
from .options import plan_options_of
from .requests import MachineOptions, PlanRequest, SourceOptions

if TYPE_CHECKING:
    from ..index.config import IndexConfig

_UNKNOWN: Mapping[Unknown, str] = {
    "driver": "unknown-driver",
    "gpus": "unknown-gpus",
    "driver-and-gpus": "unknown-driver-and-gpus",
}
"""The causes."""


class PlanInputs(NamedTuple):
    """Everything that a plan is made from, and the environment to work on."""

    facts: Facts
    options: PlanOptions
    matrix: Matrix
    target: Target | None
    """None where a facts file stands for the environment too, or flags do."""
    elsewhere: bool
    """True where the plan is for another machine than this one."""

    @property
    def where(self) -> Where:
        """Return where the environment of the plan is."""
        if self.target:
            return "here"
        if not self.elsewhere:
            return "new"
        python, source = self.facts.python.executable, self.facts.sources.get("python")
        return "new-there" if (python, source) == (None, "--python") else "there"


def gather_inputs(
    asked: PlanRequest, environ: Mapping[str, str], *, on_target: bool = False
) -> PlanInputs:
    """Gather everything that a plan is made from.

    `on_target`: something is to be done, so the environment is always read from where it is.
    Raises what `probe_machine`, `read_facts` and `plan_options_of` raise.
    """
    options = plan_options_of(asked)
    matrix = load_matrix(torch=False)
    facts, target = _look(asked.machine, environ, on_target=on_target)
    if target is not None:
        facts = with_unknown_releases(facts, target, matrix)
    if asked.install.torch is None:
        options = options._replace(torch=torch_of_lines(options, facts))
    if options.torch != "keep" or facts.package(TORCH) is not None:
        matrix = add_torch(matrix)
    return PlanInputs(
        facts=facts,
        options=options,
        matrix=matrix,
        target=target,
        elsewhere=asked.machine.elsewhere,
    )


def _look(
    machine: MachineOptions, environ: Mapping[str, str], *, on_target: bool
) -> tuple[Facts, Target | None]:
    """Return the facts to plan from, and the environment where it was looked at."""
    new = describes_environment(machine, environ, Path.cwd())
    if machine.facts_file is None:
        facts, target = probe_machine(machine, environ)
        facts = on_described_machine(facts, machine, new=new)
        return (in_new_environment(facts, machine.python), None) if new else (facts, target)
    facts = on_described_machine(read_facts(machine.facts_file), machine, new=False)
    if new:
        return in_new_environment(facts, machine.python), None
    if machine.python is None and not on_target:
        return facts, None
    target = target_of(machine.python, environ=environ, cwd=Path.cwd(), runner=run)
    if on_target:
        require_platform(facts.platform, target)
    facts = in_environment(facts, target, environ.get("HOME"))
    return with_surroundings(facts, target, environ), target


def require_known(facts: Facts, name: str = "") -> None:
    """Refuse to do anything for a machine of which nobody says the driver or the GPUs.

    `name`: of the machine, where there are several. Raises Error `machine-unknown`.
    """
    if facts.unknown:
        machine, what = f"{name}: " if name else "", cause(_UNKNOWN[facts.unknown])
        raise Error("machine-unknown", machine=machine, what=what)


def wheels_given(find_links: str | None) -> Path | None:
    """Return the folder of `--find-links`. Raises Error `find-links-unreadable`."""
    if find_links is None:
        return None
    folder = Path(find_links)
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise Error("find-links-unreadable", folder=folder, cause=error.strerror) from error
    return folder


def index_config_of(
    sources: SourceOptions, environ: Mapping[str, str], prefix: Path | None
) -> IndexConfig:
    """Return where packages come from, by the flags and the user's configuration.

    Raises Error `index-insecure`, `index-unreachable` for what is no address, and that of
    `wheels_given`.
    """
    from ..index.config import load_index_config

    return load_index_config(
        environ,
        index_url=sources.index_url,
        torch_index=sources.torch_index_url,
        tensorrt_index=sources.tensorrt_index_url,
        find_links=wheels_given(sources.find_links),
        offline=sources.offline,
        prefix=prefix,
    )
