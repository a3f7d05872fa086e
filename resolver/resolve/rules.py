"""The rules of a plan: why a release of onnxruntime-gpu cannot be used here.

What would allow a newer release is found by the same rules with one fact changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..matrix.model import Build
from ..matrix.torch import TORCH
from ..plan.reasons import Reason, reason
from ..versions import major
from .candidate import Candidate, make_candidate, without_wheels
from .environment_rules import (
    check_consumers,
    check_numpy,
    check_options,
    check_pinned_libraries,
    check_requirements,
    check_shared_folders,
    check_torch,
)
from .gpu_code import capabilities, runs_on
from .machine_rules import (
    check_driver,
    check_gpu_code,
    check_gpu_present,
    check_libraries,
    check_platform,
    check_plugin,
    check_python,
    check_python_age,
    check_tensorrt,
)
from .msvc import why_msvc_runtime
from .situation import Situation

Rule = Callable[[Candidate, Situation], Iterator[Reason]]

MACHINE_RULES: tuple[Rule, ...] = (
    check_gpu_present,
    check_platform,
    check_python,
    check_python_age,
    check_driver,
    check_gpu_code,
    check_tensorrt,
    check_plugin,
)
"""What the machine and its Python exclude, whatever is installed; and `check_libraries`."""
BUILD_RULES: tuple[Rule, ...] = (*MACHINE_RULES, check_torch, check_consumers)
REQUIREMENT_RULES: tuple[Rule, ...] = (check_requirements, check_options)
"""These and those before look at no wheel: choosing them takes time."""
_BY_MACHINE: tuple[Rule, ...] = (*MACHINE_RULES, check_libraries)
_BY_ENVIRONMENT: tuple[Rule, ...] = (
    check_torch,
    check_consumers,
    check_pinned_libraries,
    check_shared_folders,
    check_numpy,
    *REQUIREMENT_RULES,
)


class Judgement(NamedTuple):
    """Why a candidate cannot be used; it can where there is no reason."""

    machine: tuple[Reason, ...]
    """What the machine and its Python exclude, whatever is installed."""
    environment: tuple[Reason, ...]
    """What is installed, or asked for, excludes."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return all reasons, those of the machine first."""
        return (*self.machine, *self.environment)

    def __bool__(self) -> bool:
        """Return whether anything speaks against it."""
        return bool(self.machine or self.environment)


def judge(candidate: Candidate, situation: Situation) -> Judgement:
    """Return every reason why `candidate` cannot be used here, in the order of the rules."""
    machine, environment = (
        tuple(why for rule in rules for why in rule(candidate, situation))
        for rules in (_BY_MACHINE, _BY_ENVIRONMENT)
    )
    return Judgement(machine, environment)


def judge_without_wheels(build: Build, situation: Situation) -> Judgement:
    """Return every reason why `build` cannot be used here, but for those of wheels."""
    candidate = without_wheels(build, situation)
    machine = tuple(why for rule in MACHINE_RULES for why in rule(candidate, situation))
    rules = (check_torch, check_consumers, *REQUIREMENT_RULES)
    return Judgement(machine, tuple(why for rule in rules for why in rule(candidate, situation)))


def reasons_against(candidate: Candidate, situation: Situation) -> tuple[Reason, ...]:
    """Return every reason why `candidate` cannot be used here: those of the machine first."""
    return judge(candidate, situation).reasons


def is_usable(build: Build, situation: Situation) -> bool:
    """Return whether no rule rejects `build` here; its wheels are chosen last."""
    candidate = without_wheels(build, situation)
    if any(True for rule in (*BUILD_RULES, *REQUIREMENT_RULES) for _ in rule(candidate, situation)):
        return False
    return not judge(make_candidate(build, situation, first_failure_only=True), situation)


def reasons_for(candidate: Candidate, situation: Situation) -> tuple[Reason, ...]:
    """Return why a candidate works that no rule rejects."""
    build = candidate.build
    reasons = [reason("why-driver", cuda=build.cuda, driver_cuda=situation.driver_cuda or "")]
    for capability in capabilities(situation):
        how = runs_on(build.sass, build.ptx, capability)
        reasons.append(reason(f"why-{how}", gpu=capability))
    for release in (component.release for component in candidate.components.chosen):
        by = tuple(demand.by for demand in situation.demanded(release.name))
        if by:
            wheel = f"{release.name} {release.version}"
            reasons.append(reason("why-pinned", distribution=wheel, by=by))
    sharing = tuple(
        consumer.by
        for consumer in situation.consumers
        if consumer.name != TORCH and consumer.cuda == major(build.cuda)
    )
    if sharing:
        reasons.append(reason("why-consumers", by=sharing, cuda=major(build.cuda)))
    return (*reasons, *why_msvc_runtime(build, candidate.runtime, situation))
