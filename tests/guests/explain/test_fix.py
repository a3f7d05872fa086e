"""What mends a log's cause: each way by itself, with findings and plans made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ortgpu_fix.guests.explain import fix as fixing
from ortgpu_fix.guests.explain.fix import Fix
from ortgpu_fix.guests.explain.observation import Observation
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.plan.model import Plan, PlanVerdict
from ortgpu_fix.plan.reasons import Severity, finding, reason


def fix_for(*args: Any, **words: Any) -> Fix:
    """Return what fixes it, of whichever cause it is."""
    return fixing.fix_for(*args, **words)._replace(code=None)


PLAN = Plan(verdict="healthy", matrix_date="2026-01-01", matrix_digest="sha256:0")
FIXABLE = PLAN._replace(verdict="fixable")
CLASH = finding("cpu-build-installed", "warning")


def cause(
    severity: Severity = "error",
    *,
    fixable: bool = True,
    commands: tuple[str, ...] = ("ortgpu-fix --apply",),
    origin: str | None = None,
    code: str = "any",
    certain: bool = True,
) -> Explanation:
    return Explanation(
        code=code,
        severity=severity,
        what="",
        line="",
        line_number=1,
        cause="",
        remedy="",
        commands=commands,
        fixable=fixable,
        sources=(),
        certain=certain,
        origin=origin,
    )


def planned_with(asked: list[tuple[str, ...]], made: Plan) -> Callable[[tuple[str, ...]], Plan]:
    def plan_with(flags: tuple[str, ...]) -> Plan:
        asked.append(flags)
        return made

    return plan_with


@pytest.mark.parametrize(
    ("code", "why"), [*((code, "mend-by-hand") for code in ("onnxruntime-shadowed", "gpus-hidden"))]
)
def test_what_only_the_owner_of_a_machine_can_mend(code: str, why: str) -> None:
    """Not what stands in front of the environment: that is the user's own."""
    found = finding(code, "error")

    made = fix_for([cause()], [Observation("confirmed", (found,))], FIXABLE, by_user=lambda _: True)

    assert made == Fix(reason(why), finding=found)


def test_what_the_user_has_to_do_first_is_told_in_place_of_a_command() -> None:
    held = finding("installed-conda", "error")
    plan = FIXABLE._replace(findings=(finding("gpus-hidden", "warning"), held))

    made = fix_for([cause()], [Observation("unseen")], plan)

    assert made == Fix(reason("mend-by-hand"), finding=held)


@pytest.mark.parametrize(
    ("severity", "fixable", "made"),
    [
        ("error", False, Fix(reason("mend-by-hand"))),
        ("error", True, Fix(reason("mend-here"), ("--apply",))),
        ("info", False, Fix(reason("mend-by-hand"))),
    ],
)
def test_what_no_package_mends_is_not_sent_to_apply(
    severity: Severity, *, fixable: bool, made: Fix
) -> None:
    """Whatever else the plan would change here: that of a text without a list always installs."""
    assert fix_for([cause(severity, fixable=fixable)], [Observation("unseen")], FIXABLE) == made


@pytest.mark.parametrize(
    ("severity", "verdict", "made"),
    [
        ("info", "fixable", Fix(reason("mend-found"), ("--apply",), CLASH)),
        ("error", "fixable", Fix(reason("mend-by-hand"))),
        ("info", "impossible", Fix(reason("mend-found-by-hand"), (), CLASH)),
        ("info", "healthy", Fix(reason("mend-right"), ("verify",))),
    ],
)
def test_beside_what_needs_no_mending_a_clash_that_the_plan_finds_is_told(
    severity: Severity, verdict: PlanVerdict, made: Fix
) -> None:
    plan = PLAN._replace(verdict=verdict, findings=(CLASH,))

    assert fix_for([cause(severity, fixable=False)], [Observation("unseen")], plan) == made


OURS, LOST = cause(code="cudnn-9-missing"), cause(code="no-gpu-visible", fixable=False)
PART = reason("mend-part", mended="cudnn-9-missing", stays="no-gpu-visible")
APPLY = ("--apply",)


@pytest.mark.parametrize("causes", [[OURS, LOST], [LOST, OURS]])
@pytest.mark.parametrize("plan", [FIXABLE, None])
def test_what_the_command_does_not_mend_is_named_beside_what_it_mends(
    causes: list[Explanation], plan: Plan | None
) -> None:
    """In any order: a driver that does not answer was told as mended with cuDNN."""
    here = [] if plan is None else [Observation("unseen")] * 2

    assert fix_for(causes, here, plan) == Fix(PART, APPLY)


def test_flags_of_a_remedy_with_which_no_plan_is_possible_are_left_out() -> None:
    """A driver that runs no newer release: `--ort ">=1.19" --apply` was promised, and refused."""
    asked: list[tuple[str, ...]] = []
    causes = [cause(commands=('ortgpu-fix --ort ">=1.19" --apply',))]
    none = PLAN._replace(verdict="impossible")

    made = fix_for(causes, [Observation("confirmed")], FIXABLE, planned_with(asked, none))

    assert made == Fix(reason("mend-here"), ("--apply",))
    assert asked == [("--ort", ">=1.19")]


@pytest.mark.parametrize(
    ("state", "fixable", "why", "arguments"),
    [
        ("confirmed", True, "mend-right", ("verify",)),
        ("confirmed", False, "mend-by-hand", ()),
        ("unseen", True, "mend-verify", ("verify",)),
    ],
)
def test_where_the_packages_are_right(
    state: str, *, fixable: bool, why: str, arguments: tuple[str, ...]
) -> None:
    made = fix_for([cause(fixable=fixable)], [Observation(state)], PLAN)  # type: ignore[arg-type]

    assert made == Fix(reason(why), arguments)


# No known failure is in the log: https://github.com/hacksider/Deep-Live-Cam/issues/1862, where
# onnxruntime-gpu for CUDA 13 stood beside a torch for CUDA 12.

NOTHING_KNOWN = Fix(reason("mend-nothing-known"), ("verify",))
MISSING = finding("library-missing", "error")


@pytest.mark.parametrize(
    "code", [*("consumers-disagree", "cpu-build-installed", "torch-no-gpu-code", "two-cuda-majors")]
)
def test_without_a_known_failure_a_clash_that_the_plan_finds_is_told(code: str) -> None:
    clash = finding(code, "warning")
    plan = FIXABLE._replace(findings=(MISSING, clash, finding("two-cuda-majors", "error")))

    assert fix_for((), (), plan) == Fix(reason("mend-found"), ("--apply",), clash)
    by_hand = Fix(reason("mend-found-by-hand"), (), clash)
    assert fix_for((), (), plan, by_user=lambda each: each == clash) == by_hand
    assert fix_for((), (), plan._replace(verdict="impossible")) == by_hand
    assert fix_for((), (), plan._replace(verdict="healthy")) == by_hand


def test_what_is_only_missing_is_not_told_of_a_text() -> None:
    info = finding("two-cuda-majors", "info")

    assert fix_for((), (), FIXABLE._replace(findings=(MISSING, info))) == NOTHING_KNOWN
    assert fix_for((), (), FIXABLE) == NOTHING_KNOWN


def test_who_has_an_environment_of_its_own_is_told_whom_to_ask() -> None:
    """`ortgpu-fix verify` on this machine was the answer to a program of .NET, and to an image."""
    clash = FIXABLE._replace(findings=(CLASH,))
    ask = Fix(reason("mend-ask", program="a .NET program"))

    assert fix_for((), (), None, program="a .NET program") == ask
    assert fix_for((), (), clash, program="a .NET program") == ask
    assert fix_for([cause()], [Observation("unseen")], FIXABLE, program="x").why == reason(
        "mend-here"
    )


def test_where_no_machine_was_looked_at_and_no_command_applies_verify_does() -> None:
    made = fix_for([cause(commands=("ortgpu-fix",))], [], None)

    assert (made.why.code, made.arguments) == ("mend-verify", ("verify",))


def test_what_keeps_programs_away_is_named_where_the_packages_are_complete() -> None:
    shadowed = finding("onnxruntime-shadowed", "error")
    plan = PLAN._replace(findings=(shadowed,))

    made = fix_for([cause()], [Observation("confirmed")], plan)

    assert made == Fix(reason("mend-by-hand"), finding=shadowed)
