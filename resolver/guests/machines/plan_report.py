"""A fleet's plan, in words and as JSON.

Returns sections and documents, prints nothing.

The document is that of a plan, as far as it can be. `verdict` is `fixable`, or `impossible` where a
machine is left without anything. `groups` hold their `machines` and their `targets`, each with the
`selection`, `install`, `companions` and `requires` of a plan; where there is one target only, these
stand at the top as well, as in the plan of one machine. `rejected` names with each reason the
machines that it holds for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...facts.model import CPU_BUILD, GPU_BUILD
from ...lock.groups import FleetMachine, Group, group_names
from ...messages.catalog import Texts
from ...messages.sections import Row, Section, join_neighbours
from ...report.plan_document import SCHEMA, judged_json, plan_json, reasons_json
from ...report.rejected import SHORT, reason_text
from .model import FleetPlan

_OF_A_TARGET = ("selection", "install", "companions", "requires")


def fleet_json(made: FleetPlan, texts: Texts) -> dict[str, object]:
    """Return the document that `--json` prints; `texts` must be English."""
    targets = [target for group in made.groups for target in group.targets]
    document: dict[str, object] = plan_json(targets[0].plan, texts) if len(targets) == 1 else {}
    return document | {
        "schema": SCHEMA,
        "verdict": "fixable" if made.complete else "impossible",
        "groups": [_group_json(group, texts) for group in made.groups],
        "rejected": [
            {
                "package": GPU_BUILD,
                "version": excluded.version,
                "reasons": [
                    {**why, "machines": _names(one.machines)}
                    for one in excluded.by
                    for why in judged_json(one.machine, one.environment, texts)
                ],
            }
            for excluded in made.excluded
        ],
        "without_gpu": _names(made.without_gpu),
        "impossible": [
            {"machine": machine.name, "reasons": reasons_json(reasons, texts)}
            for machine, reasons in made.impossible
        ],
        "matrix": {"date": made.matrix_date, "digest": made.matrix_digest},
    }


def _group_json(group: Group, texts: Texts) -> dict[str, object]:
    return {
        "distribution": group.distribution,
        "version": group.version,
        "cuda": group.cuda,
        "machines": _names(group.machines),
        "targets": [
            {
                "platform": target.platform,
                "python": target.python,
                "abi": target.abi,
                "machines": _names(target.machines),
                **{key: plan_json(target.plan, texts)[key] for key in _OF_A_TARGET},
            }
            for target in group.targets
        ],
    }


def _names(machines: Iterable[FleetMachine]) -> list[str]:
    return [machine.name for machine in machines]


def fleet_sections(
    made: FleetPlan, texts: Texts, *, verbose: bool, command: str
) -> tuple[Section, ...]:
    """Return the plan for people; `command` writes the locks."""
    one = sum(group.distribution == GPU_BUILD for group in made.groups) == 1
    names = group_names(made.groups)
    sections = [
        _group(group, name, texts, one=one, everybody=made.complete, verbose=verbose)
        for group, name in zip(made.groups, names, strict=True)
    ]
    sections.append(_excluded(made, texts, one=one, verbose=verbose))
    served = any(group.distribution == CPU_BUILD for group in made.groups)
    if made.without_gpu and not served:
        rows = [Row(text=_listed(made.without_gpu, texts, verbose=verbose))]
        if made.groups:
            rows.append(Row(text=texts.label("fleet-with-cpu"), style="dim"))
        sections.append(Section(heading=texts.label("fleet-without-gpu"), rows=tuple(rows)))
    impossible = tuple(
        Row(head=machine.name, text=reason_text(reasons, texts, verbose=verbose), style="red")
        for machine, reasons in made.impossible
    )
    sections.append(Section(heading=texts.label("fleet-impossible"), rows=impossible))
    sections.append(_verdict(made, texts, command, served=served))
    return tuple(section for section in sections if section.rows)


def _verdict(made: FleetPlan, texts: Texts, command: str, *, served: bool) -> Section:
    if not made.complete:
        left = len(made.impossible) + (0 if served else len(made.without_gpu))
        return Section(
            rows=(Row(text=texts.label("fleet-incomplete", count=left), style="bold red"),)
        )
    groups = len(made.groups)
    text = texts.label("fleet-together" if groups == 1 else "fleet-apart", count=groups)
    row = Row(text=command, style="bold", unwrapped=True)
    return Section(rows=(Row(text=text, style="bold"), row))


def _group(
    group: Group, name: str, texts: Texts, *, one: bool, everybody: bool, verbose: bool
) -> Section:
    whole = "fleet-one" if one and everybody else "fleet-group"
    label = "fleet-cpu" if group.cuda is None else whole
    heading = texts.label(
        label,
        name=name,
        count=len(group.machines),
        distribution=group.distribution,
        version=group.version,
        cuda=group.cuda,
    )
    rows = [
        Row(
            head=f"{target.platform}, {target.abi}",
            text=_listed(target.machines, texts, verbose=verbose),
        )
        for target in group.targets
    ]
    if one or verbose:
        rows.extend(_packages(group, texts))
    return Section(heading=heading, rows=tuple(rows))


def _packages(group: Group, texts: Texts) -> Iterable[Row]:
    """Say each distribution once; with its platforms where it is not the same on all."""
    found: dict[tuple[str, str], set[str]] = {}
    for target in group.targets:
        for wheel in target.plan.selection:
            found.setdefault((wheel.name, wheel.version), set()).add(target.platform)
    everywhere = {target.platform for target in group.targets}
    for name, version in sorted(found):
        platforms = found[name, version]
        text = version
        if platforms != everywhere:
            only = ", ".join(sorted(platforms))
            text = texts.label("fleet-only", version=version, platforms=only)
        yield Row(head=name, text=text, style="green")


def _excluded(made: FleetPlan, texts: Texts, *, one: bool, verbose: bool) -> Section:
    """Say what excludes newer releases or, of a split, what keeps the groups apart."""
    chosen = {group.version for group in made.groups}
    count = None if verbose else 1
    groups = join_neighbours(
        (excluded.version, [(each.machines, each.reasons[:count]) for each in excluded.by])
        for excluded in made.excluded
        if one or verbose or excluded.version in chosen
    )
    shown = groups if verbose or not one else groups[:SHORT]
    rows: list[Row] = []
    for versions, by in shown:
        head = texts.versions(versions)
        by_reason: dict[str, list[FleetMachine]] = {}
        for concerned, reasons in by:
            why = reason_text(reasons, texts, verbose=verbose)
            by_reason.setdefault(why, []).extend(concerned)
        for why, machines in by_reason.items():
            names = _listed(machines, texts, verbose=verbose)
            rows.append(Row(head=head, text=texts.label("fleet-not-on", names=names, why=why)))
            head = ""
    hidden = len(made.excluded) - sum(len(versions) for versions, _ in shown)
    if hidden:
        rows.append(Row(head="…", text=texts.label("rejected-more", count=hidden), style="dim"))
    return Section(heading=texts.label("fleet-why" if one else "fleet-split"), rows=tuple(rows))


def _listed(machines: Sequence[FleetMachine], texts: Texts, *, verbose: bool) -> str:
    names = sorted(_names(machines))
    if verbose or len(names) <= SHORT + 1:
        return texts.listed(names)
    return texts.label("fleet-more", names=texts.listed(names[:SHORT]), count=len(names) - SHORT)
