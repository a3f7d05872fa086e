"""What a machine and an environment say of what a log says.

In: explanations, facts, and the plan that was made from them; out: whether each cause is confirmed
here, is not so here, or cannot be seen here, with what was seen; and what mends it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from packaging.specifiers import SpecifierSet

from ..facts.model import GPU_BUILD, Facts
from ..plan.model import Plan
from ..plan.reasons import Finding, Reason, reason
from .explanations import Explanation
from .failures import ByRelease, Failure, FailureTable

State = Literal["confirmed", "not-so", "unseen"]

MATCH = ("--torch", "match")
"""Flags that allow another torch, where the installed one leaves no way."""
ANY = "*"
"""In `Failure.findings`: whatever is wrong here."""
LIBRARIES = frozenset({"libraries", "cudnn", "zlib", "msvc"})


class Here(NamedTuple):
    """What the machine says of one explanation."""

    state: State
    findings: tuple[Finding, ...] = ()
    """What confirms it."""
    why: Reason | None = None
    """What is there instead, or why it cannot be seen: a label of the texts."""


class Mending(NamedTuple):
    """What mends it here: a label of the texts, and the arguments of this program."""

    why: Reason
    arguments: tuple[str, ...] = ()
    """Of `ortgpu-fix`; empty where no command of this program mends it."""
    finding: Finding | None = None
    """What only the owner of the machine can mend."""


def look(
    explanations: Sequence[Explanation], table: FailureTable, facts: Facts, plan: Plan
) -> tuple[Here, ...]:
    """Return what the machine says of each explanation."""
    by_release = [row.by_release for row in table.failures if row.by_release]
    return tuple(
        _look(each, table.by_code[each.code], by_release, facts, plan) for each in explanations
    )


def _look(
    explanation: Explanation,
    row: Failure,
    by_release: Sequence[ByRelease],
    facts: Facts,
    plan: Plan,
) -> Here:
    if explanation.origin is not None:
        return Here("unseen", why=reason("here-other-program"))
    if row.about == "memory":
        return Here("unseen", why=reason("here-memory"))
    releases = [by.releases for by in by_release if by.inside == row.code]
    if releases:
        return _of_release(releases[0], facts)
    wrong = [each for each in plan.findings if each.severity != "info"]
    known = [each for each in plan.findings if each.code in row.findings]
    if ANY in row.findings:
        known += [each for each in wrong if each not in known]
    if known:
        return Here("confirmed", findings=tuple(known))
    if not row.findings:
        return Here("unseen", why=reason("here-only-there"))
    instead = _instead(row, facts, plan)
    return Here("not-so", why=instead) if instead else Here("unseen", why=_unseen(row, facts, plan))


def _instead(row: Failure, facts: Facts, plan: Plan) -> Reason | None:
    """Return what is there instead of a failure that was looked for and not found."""
    driver, build = facts.driver, facts.onnxruntime
    if row.about == "driver" and driver is not None and not driver.error:
        return reason("here-driver", version=driver.version or "?", cuda=driver.cuda or "?")
    gpu_build = build is not None and build.distribution == GPU_BUILD and build.intact
    if row.about in {"build", "native"} and build is not None and gpu_build:
        return reason("here-build", version=build.version or "?", cuda=build.cuda or "?")
    looked_for = plan.verdict != "impossible"  # they are those of the release that is chosen
    if row.about in LIBRARIES and build is not None and gpu_build and looked_for:
        return reason("here-libraries", version=build.version or "?")
    numpy = facts.package("numpy")
    if row.about == "numpy" and numpy is not None:
        return reason("here-package", name=numpy.name, version=numpy.version)
    if row.about == "gpu-code" and facts.gpus and build is not None and gpu_build:
        return reason("here-gpu-code", version=build.version or "?")
    return reason("here-healthy") if plan.verdict == "healthy" else None


def _unseen(row: Failure, facts: Facts, plan: Plan) -> Reason:
    build = facts.onnxruntime
    if build is None or build.distribution != GPU_BUILD:
        return reason("here-no-gpu-build")
    if row.about in LIBRARIES and plan.verdict == "impossible":
        return reason("here-nothing-works")
    return reason("here-only-there")


def _of_release(releases: SpecifierSet, facts: Facts) -> Here:
    """Return what is said of a failure that only some releases of onnxruntime-gpu have."""
    build = facts.onnxruntime
    if build is None or build.version is None:
        return Here("unseen", why=reason("here-no-gpu-build"))
    state: State = "confirmed" if releases.contains(build.version) else "not-so"
    return Here(state, why=reason("here-release", version=build.version))


def mending(
    explanations: Sequence[Explanation],
    here: Sequence[Here],
    plan: Plan | None,
    plan_with: Callable[[tuple[str, ...]], Plan] | None = None,
) -> Mending:
    """Return what mends it, on this machine where it was looked at.

    `plan_with` makes the plan for flags that a remedy has (`--torch match`, `--ort SPEC`): where
    the plan without them changes nothing, that one may.
    """
    if not explanations:
        return Mending(reason("mend-nothing-known"), ("verify",))
    worst = [each for each in explanations if each.severity == explanations[0].severity]
    root = worst[0]
    if all(each.origin for each in worst):
        return Mending(reason("mend-other-program"))
    apply = next((each for each in root.commands if each.endswith("--apply")), None)
    arguments = tuple(apply.replace('"', "").split()[1:]) if apply else ()
    if plan is None:
        label = "mend-by" if arguments else "mend-by-hand"
        return Mending(reason(label), arguments)
    if plan.verdict == "fixable":
        return Mending(reason("mend-here"), arguments or ("--apply",))
    asked = plan.verdict == "impossible" or here[explanations.index(root)].state == "confirmed"
    if plan_with and asked:
        for flags in dict.fromkeys((arguments[:-1], MATCH)):
            if flags and plan_with(flags).verdict == "fixable":
                return Mending(reason("mend-here"), (*flags, "--apply"))
    if plan.verdict == "impossible":
        stop = next((each for each in plan.findings if each.severity == "error"), None)
        return Mending(reason("mend-owner"), finding=stop)
    if arguments and here[explanations.index(root)].state == "unseen":
        return Mending(reason("mend-verify"), ("verify",))
    return Mending(reason("mend-right"), ("verify",))
