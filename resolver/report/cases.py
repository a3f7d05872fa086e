"""A plan by cases, in words: what each driver and GPU would get, and what decides.

Returns sections, prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts.gpu_names import neighbours
from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..plan.model import Case, DriverRange, Plan
from ..versions import numbers
from .plan_document import ASKING


def cases_section(cases: Sequence[Case], texts: Texts) -> Section:
    """Return the cases by what they get, the newest first; those with no set are the rest."""
    known = sorted({gpu for case in cases for gpu in case.gpus or ()}, key=numbers)
    lines: dict[tuple[str, DriverRange | None], list[Case]] = {}
    for case in cases:
        lines.setdefault((_outcome(case.plan, texts), case.driver), []).append(case)
    none = texts.label("case-impossible")
    rows: list[Row] = []
    said = ""
    order = list(dict.fromkeys(text for text, _ in lines))
    for text, driver in sorted(lines, key=lambda line: order.index(line[0])):
        if text != none:
            machines = _machines(driver, lines[text, driver], known, texts)
            rows.append(Row(head="" if text == said else text, text=machines))
            said = text
    if any(text == none for text, _ in lines):
        rows.append(Row(head=none, text=texts.label("case-otherwise"), style="dim"))
    return Section(heading=texts.label("cases"), rows=tuple(rows))


def question_section(plan: Plan, texts: Texts) -> Section:
    """Return what decides between the cases, and the command that shows it."""
    question = texts.label(f"question-{plan.unknown}")
    return Section(
        rows=(Row(text=question, style="bold"), Row(text=ASKING, style="bold", unwrapped=True))
    )


def _machines(
    driver: DriverRange | None, cases: Sequence[Case], known: Sequence[str], texts: Texts
) -> str:
    gpus = [gpu for case in cases for gpu in case.gpus or ()]
    return texts.label("comma").join((*_driver(driver, texts), *_gpus(gpus, known, texts)))


def _driver(driver: DriverRange | None, texts: Texts) -> Iterator[str]:
    if driver is not None:
        ends = [f">= {driver.since}"] if driver.since else []
        ends += [f"< {driver.before}"] if driver.before else []
        yield (
            texts.label("case-driver", range=texts.label("list-comma").join(ends))
            if ends
            else (texts.label("case-any-driver"))
        )


def _gpus(gpus: Sequence[str], known: Sequence[str], texts: Texts) -> Iterator[str]:
    if gpus:
        ranges = (texts.versions(alike[::-1]) for alike in neighbours(gpus, known))
        yield texts.label("case-gpus", gpus=texts.label("list-comma").join(ranges))


def _outcome(plan: Plan, texts: Texts) -> str:
    if plan.verdict == "impossible":
        return texts.label("case-impossible")
    if plan.verdict == "healthy":
        return texts.label("case-healthy", build=plan.build)
    return texts.label("case-fixable", build=plan.build, cuda=plan.cuda)
