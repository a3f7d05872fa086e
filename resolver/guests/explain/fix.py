"""What fixes a log's cause, on the machine that was looked at.

In: explanations, what the machine says of each, and its plan; out: the one command, or what only
the owner of the machine can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...log_lines.explanations import Explanation
from ...plan.model import NO_DRIVER, Plan
from ...plan.reasons import Finding, Reason, reason
from .observation import DRIVER_UNSEEN, OTHERS_CUDNN, Observation

MATCH = ("--torch", "match")
"""Flags that allow another torch, where the installed one leaves no way."""
OWNER = NO_DRIVER | {"no-driver", "no-gpu"}
"""What only the owner of a machine can fix."""
PROMISES = frozenset({"mend-by", "mend-here"})
"""What promises that a command fixes all that is wrong."""
UNSEEN = Observation("unseen")
"""What a machine says that was not looked at."""
CLASHES = frozenset(
    {
        *("consumers-disagree", "cpu-build-installed", "folder-overwritten", "library-unfit"),
        *("shared-folder", "torch-cudnn-newer", "torch-cudnn-older", "torch-driver-too-old"),
        *("torch-no-gpu-code", "torch-other-cuda", "torch-without-cuda", "two-cuda-majors"),
    }
)
"""Findings of what is there: that something is missing no text proves by not naming it."""


class Fix(NamedTuple):
    """What fixes it: a label of the texts, and the arguments of this program."""

    why: Reason
    arguments: tuple[str, ...] = ()
    """Of `ortgpu-fix`; empty where no command of this program fixes it."""
    finding: Finding | None = None
    """What no command of this program fixes."""
    code: str | None = None
    """The explanation that it is of; None: of none, or of all."""
    looks: bool = False
    """Whether `ortgpu-fix` alone, which only looks, is what is to be typed."""


def fix_for(
    explanations: Sequence[Explanation],
    observations: Sequence[Observation],
    plan: Plan | None,
    plan_with: Callable[[tuple[str, ...]], Plan] | None = None,
    *,
    by_user: Callable[[Finding], bool] = lambda _: False,
    by: str = "mend-by",
    program: str = "",
) -> Fix:
    """Return what fixes it, on this machine where it was looked at.

    `plan_with` makes the plan for flags that a remedy has (`--torch match`, `--ort SPEC`): where
    the plan without them changes nothing, that one may. `by_user`: whether no package fixes a
    finding; `by`: the label of what a command does where no machine was looked at; `program`: whose
    log it is, where that does not use this environment.
    """
    if not explanations and program:
        return Fix(reason("mend-ask", program=program))
    if not explanations:
        if plan is None:
            return Fix(reason("mend-effect"), looks=True)
        return _of_plan(plan, by_user) or Fix(reason("mend-nothing-known"), ("verify",))
    worst = [each for each in explanations if each.severity == explanations[0].severity]
    if label := _of_no_command(worst):
        return Fix(reason(label))
    if plan is None and all(each.effect for each in worst):
        return Fix(reason("mend-effect"), code=worst[0].code, looks=True)
    seen = [*zip(worst, observations or [UNSEEN] * len(worst), strict=False)]
    root, said = next((pair for pair in seen if _is_fixed(*pair, by_user)), seen[0])
    made = _of_root(root, said, plan, plan_with, by_user=by_user, by=by)._replace(code=root.code)
    stays = [
        each.code
        for each, observation in seen
        if (each.severity, each.certain, each is root) == ("error", True, False)
        and observation.state != "not-so"
        and not (_is_fixed(each, observation, by_user) and _has_flags(each, made.arguments))
    ]
    if not stays or made.why.code not in PROMISES:
        return made
    return made._replace(why=reason("mend-part", mended=root.code, stays=", ".join(stays)))


def _is_fixed(each: Explanation, said: Observation, by_user: Callable[[Finding], bool]) -> bool:
    """Return whether packages fix it here."""
    by_packages = not all(map(by_user, said.findings))
    return by_packages or (each.fixable and said.state != "not-so")


def _has_flags(each: Explanation, arguments: tuple[str, ...]) -> bool:
    """Return whether a command with these arguments may change torch, where the remedy has to."""
    return "--torch" in arguments or "--torch" not in _arguments(each)


def _of_root(
    root: Explanation,
    said: Observation,
    plan: Plan | None,
    plan_with: Callable[[tuple[str, ...]], Plan] | None,
    *,
    by_user: Callable[[Finding], bool],
    by: str,
) -> Fix:
    """Return what fixes one cause."""
    arguments = _arguments(root)
    if plan is None and root.fixable and not arguments:
        return Fix(reason("mend-verify"), ("verify",))
    if plan is None:
        return Fix(reason(by if arguments else "mend-by-hand"), arguments)
    if said.findings and all(map(by_user, said.findings)):
        flags = _flags_that_fix((arguments[:-1],), plan_with)  # a torch that is kept else
        return Fix(reason("mend-here"), arguments) if flags else _by_hand(said.findings[0])
    if said.why is not None and said.why.code in {OTHERS_CUDNN, DRIVER_UNSEEN}:  # no plan fixes it
        return Fix(reason("mend-by-hand"))
    lost = said.state == "unseen" and not root.fixable  # no package fixes it
    if lost and root.severity == "error":
        return Fix(reason("mend-by-hand"))
    if lost and plan.verdict != "healthy":
        return _of_plan(plan, by_user) or Fix(reason("mend-by-hand"))
    if plan.verdict == "fixable":
        flags = _flags_that_fix((arguments[:-1],), plan_with)  # else without: it is possible
        fix = Fix(reason("mend-here"), (*flags, "--apply"))
        return _by_hand(plan.manual_steps[0]) if plan.manual_steps else fix
    asked = plan.verdict == "impossible" or said.state == "confirmed"
    flags = _flags_that_fix((arguments[:-1], MATCH), plan_with) if asked else ()
    if flags:
        return Fix(reason("mend-here"), (*flags, "--apply"))
    return _with_these_packages(plan, said, root)


def _of_no_command(worst: Sequence[Explanation]) -> str | None:
    """Return why no command fixes it, whatever the machine: a label of the texts; None: one may."""
    if worst[0].severity == "info" and not worst[0].certain:
        return "mend-if-wanted"
    return "mend-other-program" if all(each.origin for each in worst) else None


def _of_plan(plan: Plan, by_user: Callable[[Finding], bool]) -> Fix | None:
    """Return what the plan finds wrong, where a log has no known failure: it may be the reason."""
    clashes = (each for each in plan.findings if each.code in CLASHES and each.severity != "info")
    clash = next(clashes, None)
    if clash is None:
        return None
    if plan.verdict == "fixable" and not by_user(clash):
        return Fix(reason("mend-found"), ("--apply",), finding=clash)
    return Fix(reason("mend-found-by-hand"), finding=clash)


def _arguments(root: Explanation) -> tuple[str, ...]:
    """Return the arguments of the command that applies a plan, where a remedy names one."""
    apply = next((each for each in root.commands if each.endswith("--apply")), None)
    return tuple(apply.replace('"', "").split()[1:]) if apply else ()


def _flags_that_fix(
    choices: Sequence[tuple[str, ...]], plan_with: Callable[[tuple[str, ...]], Plan] | None
) -> tuple[str, ...]:
    """Return the first flags with which a plan changes what is wrong; none where none do."""
    if plan_with is None:
        return ()
    wanted = (flags for flags in dict.fromkeys(choices) if flags)
    return next((flags for flags in wanted if plan_with(flags).verdict == "fixable"), ())


def _with_these_packages(plan: Plan, said: Observation, root: Explanation) -> Fix:
    """Return what fixes it where no other packages would."""
    if plan.verdict == "impossible":
        stop = next((each for each in plan.findings if each.severity == "error"), None)
        return Fix(reason("mend-owner"), finding=stop)
    if plan.unfixable:
        return _by_hand(plan.unfixable[0])
    if said.state == "confirmed" and not root.fixable:
        return Fix(reason("mend-by-hand"))
    if said.state == "unseen" and root.fixable:
        return Fix(reason("mend-verify"), ("verify",))
    return Fix(reason("mend-right"), ("verify",))


def _by_hand(found: Finding) -> Fix:
    label = "mend-owner" if found.code in OWNER else "mend-by-hand"
    return Fix(reason(label), finding=found)
