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
from ..messages.sections import STYLES, Row, Section, size
from ..plan.model import IN_FRONT, NO_DRIVER, OUTSIDE, Plan, Where
from ..plan.wheels import Wheel, read_hashes, short_name
from .cases import cases_section, question_section
from .plan_document import way_text
from .rejected import rejected_section

ON_THIS_MACHINE = frozenset(
    {
        *("allow-conflicts", "drop-wish", "ignore-gpu", "match-torch", "other-torch"),
        *("other-cuda", "other-requirement", "other-version", "own-requirement"),
        *("other-python", "driver-visible", "gpu-visible"),
    }
)
"""What makes a plan possible on the same machine."""


def machine_section(facts: Facts, texts: Texts) -> Section:
    """Say which machine and environment the plan is for."""
    platform, driver = facts.platform, facts.driver
    name = platform.distribution or platform.system.capitalize()
    system = [name, platform.machine, platform.libc]
    if facts.sources.get("platform") == "":
        system.append(texts.label("assumed", flag="`--platform`"))
    if driver is None:
        driver_text = texts.label("driver-none")
    elif driver.error is not None and driver.version is None:
        driver_text = driver.error_evidence
    elif driver.cuda is None:  # then the release decides
        driver_text = driver.version or texts.label("unknown")
    else:
        version = driver.version or texts.label("unknown")
        driver_text = texts.label("driver-line", version=version, cuda=driver.cuda)
    if facts.gpus is None:
        gpu_text = texts.label("unknown")
    else:
        unknown = texts.label("unknown")
        counted = Counter(
            (gpu.name or "GPU", gpu.compute_capability or unknown) for gpu in facts.gpus
        )
        gpu_text = ", ".join(
            (f"{count} × " if count > 1 else "") + f"{name} ({capability})"
            for (name, capability), count in counted.items()
        )
    python = facts.python
    path, source = python.executable, facts.sources.get("python")
    source = texts.label("own") if source == OWN_ENVIRONMENT else source
    named = texts.label("named-by", path=path, source=source) if path and source else path
    if path is None and facts.sources.get("python") == OWN_ENVIRONMENT:
        named = texts.label("assumed", flag="`--python 3.12`")
    where = [f"Python {python.version}", python.environment, named]
    where += [texts.label("assumed-packages")] if OTHER_PACKAGES in facts.sources else []
    return Section(
        rows=(
            Row(head=texts.label("machine"), text=_joined(system)),
            Row(head=texts.label("driver"), text=driver_text),
            Row(head=texts.label("gpus"), text=gpu_text or texts.label("none")),
            Row(head=texts.label("environment"), text=_joined(where).replace("\n", " ")),
        )
    )


def _joined(parts: Iterable[str | None]) -> str:
    return ", ".join(part for part in parts if part)


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
) -> tuple[Section, ...]:
    """Return the plan for people.

    `asked`: a wish chose the release; `command`: what does the plan `where` its environment is;
    `at_hand`: the files of wheels that need not be downloaded. The last section says what
    all this means, and has the command on a line of its own.
    """
    sections = [_checked(machine_section(facts, texts), plan, facts), _findings(plan, texts)]
    if plan.cases:
        sections.append(cases_section(plan.cases, texts))
        sections.append(question_section(plan, texts))
        return tuple(section for section in sections if section.rows)
    if plan.verdict != "impossible":
        sections.append(_steps(plan, facts, texts, at_hand, verbose=verbose))
        if verbose:
            sections.append(_why(plan, facts, texts, asked=asked))
    sections.append(Section(rows=tuple(_runs_on(plan, texts))))
    if verbose or plan.verdict == "impossible":
        sections.append(rejected_section(plan, texts, verbose=verbose))
    sections.append(_consumers(plan, texts))
    sections.append(Section(rows=tuple(Row(text=way_text(way, texts)) for way in plan.ways)))
    sections.append(_unlock(plan, texts, elsewhere=shows_other_index(plan, asked=verbose or asked)))
    sections.append(_verdict(plan, texts, command, facts, asked=asked, where=where))
    return tuple(section for section in sections if section.rows)


def _checked(machine: Section, plan: Plan, facts: Facts) -> Section:
    """Mark what of the machine is right, and what is not."""
    marks = dict.fromkeys(range(len(machine.rows)), " ")
    if plan.verdict != "impossible":
        marks |= {1: "✓", 2: "✓"}
    if plan.unknown:
        marks |= {at: "?" for at, what in ((1, "driver"), (2, "gpus")) if what in plan.unknown}
    if facts.driver is None or facts.driver.error is not None:
        marks[1] = "✗"
    rows = (row._replace(head=f"{marks[at]} {row.head}") for at, row in enumerate(machine.rows))
    return Section(rows=tuple(rows))


def _verdict(
    plan: Plan, texts: Texts, command: str, facts: Facts, *, asked: bool, where: Where
) -> Section:
    styles = {"healthy": "bold green", "fixable": "bold", "impossible": "bold red"}
    problems = sum(row.severity == "error" and row.code not in OUTSIDE for row in plan.findings)
    code: str = plan.verdict
    if code == "fixable":
        code = _what_the_command_does(plan, problems, where)
    beside = plan.works_beside if plan.verdict == "impossible" else None
    if beside is not None:
        code = "impossible-beside" if beside.blockers else "impossible-as-it-is"
    elif plan.verdict == "impossible" and any(
        ON_THIS_MACHINE.issuperset(change.code for change in row.changes) for row in plan.unlock
    ):
        code = "impossible-as-it-is"
    if asked and plan.verdict == "impossible":
        code = "impossible-asked"
    if code == "healthy" and plan.outside:
        outside = {row.code for row in plan.outside}
        label = "outside" if outside & NO_DRIVER else "outside-tensorrt"
        text = texts.label("shadowed" if outside & IN_FRONT else label, build=plan.build)
        return Section(rows=(Row(text=text, style="bold red"),))
    python = facts.python.version
    values: dict[str, object] = {"build": plan.build, "count": problems, "python": python}
    values["unused"] = texts.label("list-comma").join(map(str, plan.unused_by))
    if beside is not None:
        values |= {"package": beside.package, "version": beside.version}
        values["by"] = texts.label("list-comma").join(map(str, beside.blockers))
    text = texts.label(code, **values)
    rows = [Row(text=text, style=styles[plan.verdict])]
    if plan.verdict == "fixable":
        rows.append(Row(text=command, style="bold", whole=True))
    return Section(rows=tuple(rows))


def _what_the_command_does(plan: Plan, problems: int, where: Where) -> str:
    """Return the label of the sentence before the command, which must not say more than it does."""
    if any(row.code == "user-environment" for row in plan.findings):
        return "fixable-in-a-venv"
    if plan.first:
        return "fixable-after"
    if plan.needs:
        return f"fixable-if-{'-and-'.join(plan.needs)}"
    if plan.outside:
        return "fixable-in-part"
    if plan.unused_by:
        return "fixable-unused" if problems else "fixable-none-unused"
    if where == "new":
        return "fixable-in-a-new-venv"
    if where == "new-there":
        return "fixable-in-a-new-venv-there"
    if where == "there":
        return "fixable-there" if problems else "fixable-none-there"
    return {0: "fixable-none", 1: "fixable-one"}.get(problems, "fixable")


def _findings(plan: Plan, texts: Texts) -> Section:
    marks = {"error": "✗", "warning": "!", "info": "·"}
    rows: list[Row] = []
    for finding in plan.findings:
        head, style = marks[finding.severity], STYLES[finding.severity]
        rows.append(Row(head=head, text=texts.summary(finding), style=style))
        # What the plan itself does stands there; what only the user can do is said here.
        if texts.is_for_user(finding):
            rows.append(Row(text=texts.remedy(finding), style="dim"))
    installing = {wheel.name for wheel in plan.install}
    kept = [row for row in plan.selection if row.name not in installing]
    kept = [row for row in kept if row.index_url != IN_TORCH]  # a finding names them
    if kept:
        listed = ", ".join(f"{short_name(row.name)} {row.version}" for row in kept)
        rows.append(Row(head="✓", text=texts.label("kept", listed=listed), style="green"))
    return Section(heading=texts.label("findings"), rows=tuple(rows))


def _steps(
    plan: Plan, facts: Facts, texts: Texts, at_hand: Collection[str], *, verbose: bool
) -> Section:
    rows = [
        Row(head=f"- {name}", text=package.version, style="red")
        for name in plan.uninstall
        if (package := facts.package(name)) is not None
    ]
    come = [
        wheel for wheel in plan.install if _is_component(wheel) and not facts.package(wheel.name)
    ]
    if verbose or len(come) == 1:
        come = []
    for wheel in plan.install:
        if wheel in come:
            continue
        before = facts.package(wheel.name)
        moved = f"{before.version} → " if before and before.version != wheel.version else ""
        more = size(wheel.size) if wheel.size else texts.label("from-index", index=wheel.index_url)
        text = f"{moved}{wheel.version}, {more}"
        rows.append(Row(head=f"+ {wheel.name}", text=text, style="green"))
    if come:
        head = texts.label("components", count=len(come))
        together = size(sum(wheel.size for wheel in come))
        text = texts.label("components-of", cuda=plan.cuda, size=together)
        rows.append(Row(head=f"+ {head}", text=text, style="green"))
    rows.extend(
        Row(
            head=f"+ {row.name}",
            text=texts.label(f"made-{row.name}", version=row.version.partition("+")[0]),
            style="green",
        )
        for row in plan.companions
    )
    if plan.requires:
        first, text = plan.requires[0], texts.label("picked-later")
        if len(plan.requires) > 1:
            first = texts.label("requirements", count=len(plan.requires))
            text = f"{', '.join(plan.requires)}: {text}"
        rows.append(Row(head=f"+ {first}", text=text, style="green"))
    if plan.install:
        rows.extend(_totals(plan, texts, at_hand))
    for added, wheels in read_hashes(plan.install, plan.matrix_added):
        listed = ", ".join(f"{short_name(row.name)} {row.version}" for row in wheels)
        text = texts.label("hash-read", listed=listed, index=added.index_url, date=added.read)
        rows.append(Row(text=text, style="dim"))
    return Section(heading=texts.label("plan"), rows=tuple(rows))


def _runs_on(plan: Plan, texts: Texts) -> Iterator[Row]:
    """Yield the line that says which machines the set can serve."""
    if plan.runs_on is not None:
        ranges = (texts.versions(row[::-1]) for row in plan.runs_on.gpus)
        gpus = texts.label("list-comma").join(ranges) or texts.label("none")
        yield Row(text=texts.label("runs-on", driver=plan.runs_on.driver, gpus=gpus))


def shows_other_index(plan: Plan, *, asked: bool) -> bool:
    """Tell whether a plan says which other index may have more: nobody knows before it is read.

    So not where PyPI has what works as things are, unless more is `asked`.
    """
    return asked or plan.verdict == "impossible" or bool(plan.needs)


def _unlock(plan: Plan, texts: Texts, *, elsewhere: bool) -> Section:
    """Say what each change would allow; changes that allow the same share a line."""
    by_gains: dict[str, list[str]] = {}
    for row in plan.unlock:
        if row.url and not elsewhere:
            continue
        by_gains.setdefault(texts.gains(row), []).append(texts.change(row))
    rows = [Row(head=gains, text=texts.label("or").join(by_gains[gains])) for gains in by_gains]
    heading = texts.label("unlock-any" if plan.verdict == "impossible" else "unlock")
    return Section(heading=heading, rows=tuple(rows))


def looking_section(commands: Sequence[str], texts: Texts) -> Section:
    """Return the commands that look for builds that are not known yet."""
    rows = (Row(text=command, whole=True) for command in commands)
    return Section(heading=texts.label("look-elsewhere"), rows=tuple(rows))


def _totals(plan: Plan, texts: Texts, at_hand: Collection[str]) -> Iterator[Row]:
    """Yield what is to be downloaded, and how much the smallest set saves or has saved."""
    total, less = _total(plan, texts, at_hand), size(plan.less)
    some_here = any(wheel.file in at_hand for wheel in plan.install)
    if plan.less and not plan.small and not some_here:
        total = texts.label("less", total=total, size=less)
    if any(wheel.name == TORCH for wheel in plan.install):
        total = texts.label("total-torch", total=total)
    yield Row(text=total)
    if plan.less and plan.small:
        yield Row(text=texts.label("less-taken", size=less), style="dim")


def _total(plan: Plan, texts: Texts, at_hand: Collection[str]) -> str:
    wanted = [wheel for wheel in plan.install if wheel.file not in at_hand]
    if not wanted:
        return texts.label("total-none")
    total = size(sum(wheel.size for wheel in wanted))
    text = texts.label(
        "total" if all(row.size for row in wanted) else "total-and-others", size=total
    )
    here = sum(wheel.size for wheel in plan.install) - sum(wheel.size for wheel in wanted)
    return texts.label("total-here", total=text, size=size(here)) if here else text


def _is_component(wheel: Wheel) -> bool:
    return wheel.name.startswith("nvidia-")


def _consumers(plan: Plan, texts: Texts) -> Section:
    """Say who else uses CUDA; torch alone is told where it decides."""
    rows = [
        Row(
            head=f"{row.name} {row.version}",
            text=texts.label("comma").join(
                ([f"CUDA {row.cuda}"] if row.cuda else []) + [texts.reason(row.why)]
            ),
            style="dim",
        )
        for row in plan.consumers
    ]
    others = any(row.name != TORCH for row in plan.consumers)
    return Section(heading=texts.label("consumers"), rows=tuple(rows if others else ()))


def _why(plan: Plan, facts: Facts, texts: Texts, *, asked: bool) -> Section:
    installed = facts.package(plan.build.name) if plan.build else None
    if installed is not None and installed.version == plan.release:
        code = "why-kept"
    else:
        shared = any(row.code == "newer-for-another-cuda" for row in plan.findings)
        code = "why-shared" if shared else "why-asked" if asked else "why-newest"
    rows = [Row(text=texts.label(code, build=plan.build))]
    rows.extend(Row(text=texts.reason(why), style="dim") for why in plan.why)
    return Section(heading=texts.label("why"), rows=tuple(rows))
