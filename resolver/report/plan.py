"""The plan, in words.

Returns sections, prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..facts.model import OTHER_PACKAGES, OWN_ENVIRONMENT, Facts
from ..matrix.model import IN_TORCH
from ..matrix.torch import TORCH
from ..messages.catalog import Texts
from ..messages.sections import STYLES, Row, Section
from ..plan.model import Plan, Unlock, Where
from ..plan.reasons import Finding, Values
from ..plan.wheels import short_name
from .cases import cases_section, question_section
from .conclusion import at_fault, command_section, is_for_you, verdict_section
from .plan_document import alternative_text
from .rejected import rejected_section
from .steps import steps_section

DRIVER = "newer-driver"
"""The code of the change of a driver for a newer one."""
LONG_LIST = 5
"""Names in a finding from which on only the first few are shown without `--verbose`."""
_LISTS = frozenset({"names", "what", "distributions"})
"""The values of findings that are lists of names."""


def machine_section(facts: Facts, texts: Texts) -> Section:
    """Say which machine and environment the plan is for."""
    platform = facts.platform
    name = platform.distribution or platform.system.capitalize()
    system = [name, platform.machine, platform.libc]
    if facts.sources.get("platform") == "":
        system.append(texts.label("assumed", flag="`--platform`"))
    rows = (
        Row(head=texts.label("system"), text=_joined(system, texts)),
        Row(
            head=texts.label("driver"),
            text=_named_by("driver", _driver(facts, texts), facts, texts),
        ),
        Row(
            head=texts.label("gpu" if len(facts.gpus or ()) == 1 else "gpus"),
            text=_named_by("gpus", _gpus(facts, texts), facts, texts),
        ),
        Row(head=texts.label("environment"), text=_environment(facts, texts)),
    )
    return Section(rows=rows)


def _named_by(what: str, text: str, facts: Facts, texts: Texts) -> str:
    """Return `text`, and which flag it is from."""
    source = facts.sources.get(what, "")
    return texts.label("from-flag", text=text, flag=source) if source.startswith("--") else text


def _driver(facts: Facts, texts: Texts) -> str:
    driver = facts.driver
    if driver is None:
        return texts.label("driver-none")
    if driver.error is not None and driver.version is None:
        return driver.error_evidence
    version = driver.version or texts.label("unknown")
    if driver.cuda is None:  # then the release decides
        return version
    return texts.label("driver-line", version=version, cuda=driver.cuda)


def _gpus(facts: Facts, texts: Texts) -> str:
    if facts.gpus is None:
        return texts.label("unknown")
    unknown = texts.label("unknown")
    counted = Counter((gpu.name, gpu.compute_capability or unknown) for gpu in facts.gpus)
    return texts.label("list-comma").join(
        (f"{count} × " if count > 1 else "")
        + texts.label("gpu-line" if name else "gpu-unnamed", name=name, capability=capability)
        for (name, capability), count in counted.items()
    ) or texts.label("none")


def _environment(facts: Facts, texts: Texts) -> str:
    python = facts.python
    path, source = python.executable, facts.sources.get("python")
    if path is None and source == OWN_ENVIRONMENT:
        path = texts.label("assumed", flag="`--python 3.12`")
    elif path and source == OWN_ENVIRONMENT:
        path = texts.label("own", path=path)
    elif path and source and not source.startswith("--"):
        path = texts.label("named-by", path=path, source=source)
    where = [f"Python {python.version}", python.environment, path]
    where += [texts.label("assumed-packages")] if OTHER_PACKAGES in facts.sources else []
    return _joined(where, texts).replace("\n", " ")


def _joined(parts: Iterable[str | None], texts: Texts) -> str:
    return texts.label("comma").join(part for part in parts if part)


def plan_sections(
    plan: Plan,
    facts: Facts,
    texts: Texts,
    *,
    verbose: bool,
    asked: bool,
    command: str,
    where: Where = "here",
    at_hand: Collection[str] = (),
    besides: Sequence[Section] = (),
) -> tuple[Section, ...]:
    """Return the plan for people.

    The first section says in one sentence what it comes to. `asked`: a wish chose the release;
    `command`: what does the plan `where` its environment is, on a line of its own in the last
    section; there is none where it is empty, or where there is nothing to do. `at_hand`: the files
    of wheels that need not be downloaded; `besides`: what else is said before the command.
    """
    machine = _checked(machine_section(facts, texts), plan, facts)
    sections = [verdict_section(plan, facts, texts, asked=asked, where=where), machine]
    sections.append(_problems(plan, texts, verbose=verbose))
    if plan.cases:
        sections.append(cases_section(plan.cases, texts))
        sections.append(_notes(plan, texts, verbose=verbose))
        sections.append(question_section(plan, texts))
        return tuple(section for section in sections if section.rows)
    if plan.verdict != "impossible":
        sections.append(steps_section(plan, facts, texts, at_hand, verbose=verbose))
        if verbose:
            sections.append(_why(plan, facts, texts, asked=asked))
    sections.append(Section(rows=tuple(_runs_on(plan, texts))))
    if verbose or (plan.verdict == "impossible" and at_fault(plan, facts) is None):
        sections.append(rejected_section(plan, texts, verbose=verbose))
    sections.append(_consumers(plan, texts))
    sections.append(_notes(plan, texts, verbose=verbose))
    sections.append(
        Section(
            rows=tuple(
                Row(text=alternative_text(alternative, texts)) for alternative in plan.alternatives
            )
        )
    )
    sections.append(_unlock(plan, texts, elsewhere=shows_other_index(plan, asked=verbose or asked)))
    sections.extend(besides)
    if plan.verdict == "impossible" and not verbose:
        sections.append(Section(rows=(Row(text=texts.label("more-verbose"), style="dim"),)))
    if plan.verdict == "fixable" and command:
        sections.append(command_section(plan, texts, command, facts, where))
    return tuple(section for section in sections if section.rows)


def _checked(machine: Section, plan: Plan, facts: Facts) -> Section:
    """Mark what of the machine is OK, and what is not."""
    marks = dict.fromkeys(range(len(machine.rows)), " ")
    fault = at_fault(plan, facts)
    if plan.verdict != "impossible" or fault is not None:
        marks |= {1: "✓", 2: "✓"}
    if facts.gpus == () or facts.gpus is None:
        marks[2] = " "
    if plan.unknown:
        marks |= {at: "?" for at, what in ((1, "driver"), (2, "gpus")) if what in plan.unknown}
    if facts.driver is None or facts.driver.error is not None:
        marks[1] = "✗"
    if fault is not None:
        marks[{"driver": 1, "gpu": 2, "python": 3}.get(fault, 0)] = "✗"
    rows = (row._replace(head=f"{marks[at]} {row.head}") for at, row in enumerate(machine.rows))
    return Section(rows=tuple(rows))


def _problems(plan: Plan, texts: Texts, *, verbose: bool) -> Section:
    """Return what is wrong; where no release works, what no package can change alone."""
    rows: list[Row] = []
    for finding in plan.findings:
        if finding.severity != "info" and (
            plan.verdict != "impossible" or texts.is_for_user(finding)
        ):
            rows.extend(_finding_rows(finding, plan, texts, verbose=verbose))
    return Section(heading=texts.label("problems"), rows=tuple(rows))


def _notes(plan: Plan, texts: Texts, *, verbose: bool) -> Section:
    """Return what is worth knowing and not wrong, and what stays unchanged."""
    rows: list[Row] = []
    for finding in plan.findings:
        if finding.severity == "info" and (verbose or finding.code != "system-library"):
            rows.extend(_finding_rows(finding, plan, texts, verbose=verbose))
    installing = {wheel.name for wheel in plan.install}
    kept = [wheel for wheel in plan.selection if wheel.name not in installing]
    kept = [wheel for wheel in kept if wheel.index_url != IN_TORCH]  # a finding names them
    if kept and plan.verdict != "unknown":
        listed = texts.listed(f"{short_name(wheel.name)} {wheel.version}" for wheel in kept)
        rows.append(Row(head="✓", text=texts.label("kept", listed=listed), style="green"))
    return Section(heading=texts.label("notes"), rows=tuple(rows))


def _finding_rows(finding: Finding, plan: Plan, texts: Texts, *, verbose: bool) -> Iterator[Row]:
    marks = {"error": "✗", "warning": "!", "info": "·"}
    shown = finding if verbose else finding._replace(values=_shortened(finding.values))
    head, style = marks[finding.severity], STYLES[finding.severity]
    yield Row(head=head, text=texts.summary(shown), style=style)
    # What the plan itself does stands there; what only the user can do is said here.
    if texts.is_for_user(finding):
        remedy = texts.remedy(finding)
        if is_for_you(finding, plan):
            remedy = texts.label("you", remedy=remedy)
        yield Row(text=remedy, style="dim")


def _shortened(values: Values) -> Values:
    """Return the values of a finding with long lists of names cut."""
    return tuple(
        (name, (*value[: LONG_LIST - 1], "…"))
        if name in _LISTS and isinstance(value, tuple) and len(value) > LONG_LIST
        else (name, value)
        for name, value in values
    )


def _runs_on(plan: Plan, texts: Texts) -> Iterator[Row]:
    """Yield the line that says which machines the packages support."""
    if plan.runs_on is not None:
        ranges = (texts.versions(gpu[::-1]) for gpu in plan.runs_on.gpus)
        gpus = texts.label("list-comma").join(ranges) or texts.label("none")
        yield Row(text=texts.label("runs-on", driver=plan.runs_on.driver, gpus=gpus))


def shows_other_index(plan: Plan, *, asked: bool) -> bool:
    """Return whether a plan says which other index may have more: nobody knows before it is read.

    So not where PyPI has what works, unless more is `asked`.
    """
    return asked or plan.verdict == "impossible" or bool(plan.needs)


def _unlock(plan: Plan, texts: Texts, *, elsewhere: bool) -> Section:
    """Say what each change would allow; changes that allow the same share a line."""
    shown = [unlock for unlock in plan.unlock if elsewhere or not unlock.url]
    impossible = plan.verdict == "impossible"
    if impossible and all(
        [change.code for change in unlock.changes] == [DRIVER] for unlock in shown
    ):
        return _drivers(shown, texts)
    by_gains: dict[str, list[str]] = {}
    for unlock in shown:
        by_gains.setdefault(texts.gains(unlock), []).append(texts.change(unlock))
    rows = [Row(head=gains, text=texts.label("or").join(by_gains[gains])) for gains in by_gains]
    several = sum(map(len, by_gains.values())) > 1
    heading = texts.label(f"unlock-{'any' if several else 'one'}" if impossible else "unlock")
    return Section(heading=heading, rows=tuple(rows))


def _drivers(unlocks: Sequence[Unlock], texts: Texts) -> Section:
    """Say which newer driver alone would allow what."""
    rows: list[Row] = []
    for unlock in unlocks:
        values = dict(unlock.changes[0].values)
        gains = texts.label("for-version", gains=texts.gains(unlock), cuda=values["cuda"])
        rows.append(Row(head=texts.label("driver-or-newer", floor=values["floor"]), text=gains))
    return Section(heading=texts.label("unlock-driver"), rows=tuple(rows))


def looking_section(commands: Sequence[str], texts: Texts) -> Section:
    """Return the commands that look for builds that are not known yet."""
    rows = (Row(text=command, unwrapped=True) for command in commands)
    return Section(heading=texts.label("look-elsewhere"), rows=tuple(rows))


def _consumers(plan: Plan, texts: Texts) -> Section:
    """Say who else uses CUDA; torch alone is shown where it decides."""
    rows = [
        Row(
            head=f"{consumer.name} {consumer.version}",
            text=texts.label("comma").join(
                ([f"CUDA {consumer.cuda}"] if consumer.cuda else []) + [texts.reason(consumer.why)]
            ),
            style="dim",
        )
        for consumer in plan.consumers
    ]
    others = any(consumer.name != TORCH for consumer in plan.consumers)
    return Section(heading=texts.label("consumers"), rows=tuple(rows if others else ()))


def _why(plan: Plan, facts: Facts, texts: Texts, *, asked: bool) -> Section:
    installed = facts.package(plan.build.name) if plan.build else None
    if installed is not None and installed.version == plan.release:
        code = "why-kept"
    else:
        shared = any(finding.code == "newer-for-another-cuda" for finding in plan.findings)
        code = "why-shared" if shared else "why-asked" if asked else "why-newest"
    rows = [Row(text=texts.label(code, build=plan.build))]
    rows.extend(Row(text=texts.reason(why), style="dim") for why in plan.why)
    return Section(heading=texts.label("why"), rows=tuple(rows))
