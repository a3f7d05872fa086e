"""What a plan says of the releases that cannot be used.

Returns sections, prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.model import GPU_BUILD
from ..messages.catalog import Texts
from ..messages.sections import Row, Section, join_neighbours
from ..plan.model import Plan, Rejected
from ..plan.reasons import Reason
from ..versions import newest_first

SHORT = 3
"""How many groups of rejected releases are shown without `--verbose`."""


def rejected_section(plan: Plan, texts: Texts, *, verbose: bool) -> Section:
    """Say what cannot be used: neighbours that are rejected for the same reasons are one group.

    A group ends where a version works. Releases of onnxruntime-gpu come first, newest first; then
    the torches that were passed over.
    """
    taken = newest_first(plan.release or "0")
    others = [rejection for rejection in plan.rejected if rejection.package != GPU_BUILD]
    why = {
        rejection.version: (
            _why_rejected(rejection, texts, verbose=verbose),
            newest_first(rejection.version) > taken,
        )
        for rejection in plan.rejected
        if rejection.package == GPU_BUILD
    }
    judged = join_neighbours((version, why.get(version)) for version in plan.considered or why)
    groups = [(versions, about) for versions, about in judged if about is not None]
    shown = groups if verbose else [group for group in groups if group[1][1]][:SHORT]
    rows = [Row(head=texts.versions(versions), text=text) for versions, (text, _) in shown]
    named = others if verbose else others[:SHORT]
    for rejection in named:
        text = _why_rejected(rejection, texts, verbose=verbose)
        rows.append(Row(head=f"{rejection.package} {rejection.version}", text=text))
    hidden = len(plan.rejected) - len(named) - sum(len(group[0]) for group in shown)
    if hidden:
        rows.append(Row(head="…", text=texts.label("rejected-more", count=hidden), style="dim"))
    return Section(heading=texts.label("rejected"), rows=tuple(rows))


def _why_rejected(rejection: Rejected, texts: Texts, *, verbose: bool) -> str:
    """Return all of why it is rejected, or the first reason and who else excludes it."""
    text = reason_text(rejection.reasons, texts, verbose=verbose)
    others = [by for by in rejection.blockers if by not in rejection.reasons[0].by]
    if verbose or rejection.machine or not others:
        return text
    return texts.label(
        "also-excludes", reason=text, by=texts.label("list-comma").join(map(str, others))
    )


def reason_text(reasons: Sequence[Reason], texts: Texts, *, verbose: bool) -> str:
    """Return the first of `reasons` in words; all of them where it may be `verbose`."""
    return texts.label("semicolon").join(
        texts.reason(why) for why in (reasons if verbose else reasons[:1])
    )
