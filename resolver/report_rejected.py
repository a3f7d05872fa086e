"""What a plan says of the releases that cannot be used.

Core: returns sections, prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .plan import Plan, Rejected
from .rules import NAME
from .sections import Row, Section
from .texts import Texts
from .versions import newest_first

SHORT = 3
"""How many groups of rejected releases are shown without `--verbose`."""


def selected(plan: Plan) -> str:
    """Return the release of onnxruntime-gpu that `plan` takes; empty where it takes none."""
    return next((row.version for row in plan.selection if row.name == NAME), "")


def rejected_section(plan: Plan, texts: Texts, *, verbose: bool) -> Section:
    """Say what cannot be used: neighbours that are rejected for the same reasons are one group.

    Releases of onnxruntime-gpu come first, newest first; then the torches that were passed over.
    """
    taken = newest_first(selected(plan) or "0")
    groups: list[tuple[list[str], str, bool]] = []
    others = [row for row in plan.rejected if row.package != NAME]
    for row in plan.rejected:
        if row.package != NAME:
            continue
        why = _reasons(row, texts, verbose=verbose)
        newer = newest_first(row.version) > taken
        if groups and groups[-1][1:] == (why, newer):
            groups[-1][0].append(row.version)
        else:
            groups.append(([row.version], why, newer))
    newer_groups = [group for group in groups if group[2]]
    shown = groups if verbose else newer_groups[:SHORT]
    rows = [Row(head=version_range(versions, texts), text=why) for versions, why, _ in shown]
    named = others if verbose else others[:SHORT]
    for row in named:
        why = _reasons(row, texts, verbose=verbose)
        rows.append(Row(head=f"{row.package} {row.version}", text=why))
    hidden = len(plan.rejected) - len(named) - sum(len(group[0]) for group in shown)
    if hidden:
        rows.append(Row(head="…", text=texts.label("rejected-more", count=hidden), style="dim"))
    return Section(heading=texts.label("rejected"), rows=tuple(rows))


def _reasons(row: Rejected, texts: Texts, *, verbose: bool) -> str:
    said = [texts.reason(why) for why in row.reasons]
    return "; ".join(said if verbose else said[:1])


def version_range(versions: Sequence[str], texts: Texts) -> str:
    """Return versions that stand side by side, newest first, as people say them."""
    if len(versions) == 1:
        return versions[0]
    return texts.label("versions", first=versions[-1], last=versions[0])
