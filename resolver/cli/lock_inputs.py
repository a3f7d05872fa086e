"""What lock and download have in common: the groups of machines, and what builds their locks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..companions.build import LocalWheel
from ..errors import Error
from ..facts.model import GPU_BUILD, Facts
from ..index.client import Index
from ..lock.builder import LockBuilder
from ..lock.groups import FleetMachine, Group, TargetPlan
from ..lock.locked_facts import names_in_locks, without_locked_packages
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..messages.catalog import Language
from ..messages.shells import pasted_commands
from ..plan.model import Plan
from ..resolve.options import PlanOptions
from ..resolve.resolver import resolve
from ..resolve.situation import situation_of
from ..utils.files import write
from ..utils.process import run
from ..uv.program import find_uv
from .command_line import SYSTEM, words_of
from .commands.plan import VERDICT_EXIT, print_plan
from .inputs import PlanInputs, gather_inputs, index_config_of, require_known
from .requests import PlanRequest

_FLAGS = (
    *("python", "facts", "driver", "gpu", "platform", "ignore-gpu", "ort", "cuda", "torch"),
    *(
        "provider",
        "requirement",
        "with-cpu",
        "no-autoload",
        "no-provide",
        "format",
        "directory",
        "find-links",
        "offline",
    ),
    *("index-url", "torch-index-url", "tensorrt-index-url", "prefer"),
)
"""What decides on the content of a lock: where it goes does not."""


class LockPlace(NamedTuple):
    """Where a lock goes, and what lies beside it."""

    output: Path | None = None
    companions: str | None = None
    """The directory of the companions, or the address of one."""
    addresses: bool = False
    """Whether it names every wheel by its address, as pylock.toml does."""


class PlannedGroups(NamedTuple):
    """What is locked, and what it was planned with."""

    groups: Sequence[Group]
    options: PlanOptions
    matrix: Matrix


def plan_group(
    asked: PlanRequest, environ: Mapping[str, str], language: Language
) -> PlannedGroups | int:
    """Return what to lock for one machine; where nothing works, show that: the exit code.

    Raises as `gather_inputs` and `require_known`.
    """
    inputs = gather_inputs(asked, environ)
    require_known(inputs.facts)
    made = resolve(inputs.facts, inputs.options, inputs.matrix)
    group = _group(made, inputs)
    if group is not None:
        return PlannedGroups([group], inputs.options, inputs.matrix)
    print_plan(made, inputs, asked, language)
    return VERDICT_EXIT["impossible"]


def _group(made: Plan, inputs: PlanInputs) -> Group | None:
    """Return the packages of the plan `made` as the lock of one machine; None where nothing works.

    It is planned again from nothing, for the release that the plan has: what is installed there
    will not be where the lock is.
    """
    version = made.release
    if version is None:
        return None
    options = inputs.options._replace(onnxruntime=f"=={version}", latest=False)
    locked = names_in_locks(inputs.matrix)
    facts = without_locked_packages(inputs.facts, inputs.matrix, locked)
    plan = resolve(facts, options, inputs.matrix)
    if options.torch == "keep":  # it is the application's own; the lock leaves it to its owner
        selection = tuple(wheel for wheel in plan.selection if wheel.name != TORCH)
        plan = plan._replace(selection=selection)
    return group_of_one(plan, inputs._replace(options=options), facts)


def group_of_one(plan: Plan, inputs: PlanInputs, facts: Facts) -> Group:
    """Return what `plan`, made of `facts`, selects, as that of one machine: that of `inputs`."""
    machine = situation_of(facts, inputs.options, inputs.matrix)
    target = TargetPlan(
        platform=machine.platform,
        abi=machine.abi,
        machines=(FleetMachine(name="", facts=inputs.facts),),
        facts=facts,
        plan=plan,
    )
    return Group(
        distribution=GPU_BUILD, version=plan.release or "", cuda=plan.cuda, targets=(target,)
    )


def lock_builder(
    asked: PlanRequest,
    environ: Mapping[str, str],
    options: PlanOptions,
    matrix: Matrix,
    place: LockPlace,
) -> LockBuilder:
    """Return what builds locks, with its companions where `place` says."""
    return LockBuilder(
        options=options,
        matrix=matrix,
        index=Index(index_config_of(asked.sources, environ, None)),
        uv=find_uv(environ, run),
        commands=pasted_commands(("ortgpu-fix", "lock", *words_of(asked.options, _FLAGS)), SYSTEM),
        folder=Path.cwd() if place.output is None else place.output.absolute().parent,
        companions=place.companions,
        addresses=place.addresses,
    )


def write_companions(
    maker: LockBuilder, groups: Sequence[Group], folder: Path
) -> tuple[LocalWheel, ...]:
    """Write the companions of all groups into `folder`. Raises Error `file-unwritable`."""
    made = {
        wheel.file: wheel
        for group in groups
        for target in group.targets
        for wheel in maker.companion_wheels(target)
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error("file-unwritable", file=folder, cause=error.strerror or error) from error
    for wheel in made.values():
        if (folder / wheel.file).is_symlink():  # the name is ours, and what it leads to is not
            (folder / wheel.file).unlink()
        write(folder / wheel.file, wheel.content)
    return tuple(made.values())
