"""The first sentence of a plan, which says what is wrong, and the last one, before its command.

Returns sections, prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..facts.model import Facts
from ..matrix.torch import TORCH
from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..plan.model import IN_FRONT, NO_DRIVER, UNFIXABLE, Plan, Where
from ..plan.reasons import Finding

AT_FAULT: Mapping[str, frozenset[str]] = {
    "driver": frozenset(
        {"no-driver", "driver-unknown", "driver-unreadable", "driver-too-old", "ptx-needs-driver"}
    ),
    "gpu": frozenset(
        {
            *("no-gpu", "no-gpu-left", "no-gpu-code", "library-no-gpu-code"),
            *("tensorrt-gpu-too-old", "provider-refuses-gpu"),
        }
    ),
    "python": frozenset({"not-cpython", "no-wheel-python", "python-too-old", "numpy-no-wheel"}),
    "system": frozenset(
        {
            *("musl", "no-wheel-platform", "glibc-too-old", "library-glibc"),
            "library-no-wheel",
        }
    ),
    "jetson": frozenset({"jetson"}),
}
"""The reasons of the machine, by what of it they speak of."""
_NOT_CUDA = frozenset({"tensorrt-missing", "plugin-missing"})
"""The errors beside which CUDA may work: they speak for themselves."""


def at_fault(plan: Plan, facts: Facts) -> str | None:
    """Return what of the machine alone excludes every release: `driver`, `gpu`, …; or None."""
    if plan.verdict != "impossible":
        return None
    if facts.driver is None:
        return "driver"
    excluded = [
        {why.code for why in rejection.machine}
        for rejection in plan.rejected
        if rejection.package != TORCH
    ]
    kinds = (
        kind for kind, codes in AT_FAULT.items() if all(codes & reasons for reasons in excluded)
    )
    return next(kinds, None) if excluded else None


def verdict_section(
    plan: Plan, facts: Facts, texts: Texts, *, asked: bool, where: Where
) -> Section:
    """Return what a plan comes to, in one sentence; `asked`: a wish chose the release."""
    if plan.verdict == "unknown":
        return _said(texts.label(f"unknown-{plan.unknown}"), "bold")
    if plan.verdict == "impossible":
        return _said(_impossible(plan, facts, texts, asked=asked), "bold red")
    if plan.verdict == "fixable":
        return _said(_fixable(plan, texts, where), "bold")
    unfixable = {finding.code for finding in plan.unfixable}
    if unfixable:
        label = "outside" if unfixable & NO_DRIVER else "outside-tensorrt"
        text = texts.label("shadowed" if unfixable & IN_FRONT else label, build=plan.build)
        return _said(text, "bold red")
    return _said(texts.label("healthy", build=plan.build), "bold green")


def _said(text: str, style: str) -> Section:
    return Section(rows=(Row(text=text, style=style),))


def _impossible(plan: Plan, facts: Facts, texts: Texts, *, asked: bool) -> str:
    comma = texts.label("list-comma")
    if asked:
        wishes = dict.fromkeys(_wishes(plan)) or (texts.label("your-options"),)
        return texts.label("impossible-asked", wish=comma.join(wishes))
    kind, beside = at_fault(plan, facts), plan.works_beside
    if kind is not None:
        return _nothing_for(kind, facts, texts)
    if beside is None:
        return texts.label("impossible")
    if not beside.blockers:
        return texts.label("impossible-as-it-is")
    by = comma.join(map(str, beside.blockers))
    return texts.label("impossible-beside", package=beside.package, version=beside.version, by=by)


def _wishes(plan: Plan) -> Iterator[str]:
    for rejection in plan.rejected:
        for why in rejection.reasons:
            values = dict(why.values)
            if why.code == "not-wished":
                yield f"`{str(values['wish']).replace(' ==', ' ')}`"


def _nothing_for(kind: str, facts: Facts, texts: Texts) -> str:
    """Return that nothing works with the driver, the GPUs, the Python or the system."""
    driver, python, platform = facts.driver, facts.python, facts.platform
    if kind == "driver" and (driver is None or driver.version is None):
        return texts.label("nothing-without-driver" if driver is None else "nothing-this-driver")
    if kind == "gpu" and not facts.gpus:
        return texts.label("nothing-without-gpu")
    gpus = (gpu.name or f"GPU {gpu.compute_capability}" for gpu in facts.gpus or ())
    named = "Python" if python.implementation == "cpython" else python.implementation
    system = (platform.distribution or platform.system.capitalize(), platform.machine)
    what = {
        "driver": driver.version if driver else "",
        "gpu": texts.label("list-comma").join(dict.fromkeys(gpus)),
        "python": f"{named} {python.version}",
        "system": ", ".join((*system, *([platform.libc] if platform.libc else []))),
        "jetson": "",
    }
    return texts.label(f"nothing-{kind}", what=what[kind])


def _fixable(plan: Plan, texts: Texts, where: Where) -> str:
    errors = [finding for finding in plan.findings if finding.severity == "error"]
    if plan.needs:
        return texts.label(f"needs-{'-and-'.join(plan.needs)}", build=plan.build)
    if where in {"new", "new-there"}:
        return texts.label("works-new", build=plan.build)
    if not errors:
        return texts.label("nothing-broken")
    if all(finding.code in _NOT_CUDA for finding in errors):
        return texts.summary(errors[0])
    unfixable = [finding for finding in errors if finding.code in UNFIXABLE]
    if unfixable:
        rest = texts.label("not-all-fixable")
    elif plan.manual_steps:
        rest = texts.label("fixable-with-you")
    else:
        rest = texts.label("all-fixable" if len(errors) > 1 else "one-fixable")
    first = (unfixable or errors)[0]
    why = texts.label("driver-broken") if first.code in NO_DRIVER else texts.brief(first)
    if why is None and len(errors) == 1:
        return texts.label("cannot-use-one", rest=rest)
    why = why or texts.label("problem-count", count=len(errors))
    return texts.label("cannot-use", why=why, rest=rest)


def command_section(plan: Plan, texts: Texts, command: str, facts: Facts, where: Where) -> Section:
    """Return the sentence before the command, which says no more than it does, and the command."""
    label = _what_the_command_does(plan, where)
    unused = texts.label("list-comma").join(map(str, plan.unused_by))
    text = texts.label(label, python=facts.python.version, unused=unused)
    return Section(
        rows=(Row(text=text, style="bold"), Row(text=command, style="bold", unwrapped=True))
    )


def _what_the_command_does(plan: Plan, where: Where) -> str:
    """Return the label of the sentence before the command."""
    if any(finding.code == "user-environment" for finding in plan.findings):
        return "fixable-in-a-venv"
    if plan.manual_steps:
        return "fixable-after"
    if plan.needs:
        return f"fixable-if-{'-and-'.join(plan.needs)}"
    if plan.unfixable:
        return "fixable-in-part"
    if plan.unused_by:
        return "fixable-unused"
    named: Mapping[Where, str] = {
        "new": "fixable-in-a-new-venv",
        "new-there": "fixable-in-a-new-venv-there",
        "there": "fixable-there",
    }
    broken = any(finding.severity == "error" for finding in plan.findings)
    return named.get(where) or ("fixable" if broken else "fixable-none")


def is_for_you(finding: Finding, plan: Plan) -> bool:
    """Return whether the user has to do what helps, because no command of this program does it."""
    yours: Collection[Finding] = (*plan.unfixable, *plan.manual_steps)
    return finding in yours
