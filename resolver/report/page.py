"""A page about a user's model, to send to a colleague: one file that needs nothing else.

Core. What is on it is what `--json` says, in words, tables and bars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..messages.catalog import Texts
from ..messages.sections import Row
from ..messages.shells import PROGRAM, TypedCommand
from ..verify.advice import Advice
from ..verify.bench import Bench, option_text
from ..verify.measurement import say_shapes
from ..verify.model_report import FREE, ModelReport
from ..verify.verification import UP_TO_THE_DRIVER, LoadedLibrary
from .measurement import name, traffic_rows, verdict_remedy, verdict_text
from .page_parts import Cell, Column, Markup, bars, document, element, prose, section, table
from .verification import remedy


class Page(NamedTuple):
    """Everything that is on the page."""

    report: ModelReport
    bench: Bench | None
    advice: Advice | None
    machine: Sequence[Row]
    libraries: Sequence[LoadedLibrary]
    findings: Sequence[tuple[str, str]]
    """What the plan finds, and what mends it."""
    versions: Sequence[tuple[str, str]]
    made: str
    """By which release of this program, and when."""
    redact: Callable[[str], str]
    """Takes homes and secrets out of a text."""
    command: TypedCommand = PROGRAM
    """This program, with the flags that were given."""


def render(page: Page, texts: Texts) -> str:
    """Return the page as HTML."""
    report = page.report
    title = texts.label("page-title", model=page.redact(report.file))
    parts = [
        element("h1", title),
        *_verdict(page, texts),
        section(texts.label("advice"), *_advice(page, texts)),
        section(
            texts.label("machine"), _pairs(page, [(row.head, row.text) for row in page.machine])
        ),
        section(texts.label("model-placement"), *_placement(page, texts)),
        section(texts.label("model-fallbacks"), _fallbacks(page, texts)),
        section(texts.label("model-outputs"), _outputs(page, texts)),
        section(texts.label("bench"), *_times(page, texts)),
        section(texts.label("page-findings"), _findings(page, texts)),
        section(texts.label("page-versions"), _pairs(page, page.versions)),
        section(texts.label("loaded"), _libraries(page, texts)),
        element("p", page.made, class_="dim"),
    ]
    return document(texts.language, title, *parts)


def _verdict(page: Page, texts: Texts) -> list[Markup]:
    report = page.report
    good = report.verdict == "works"
    colour = "good" if good else "" if report.verdict in UP_TO_THE_DRIVER else "bad"
    said = prose(page.redact(verdict_text(report, texts)))
    rows = [element("p", said, class_=f"verdict {colour}".strip(), data_verdict=report.verdict)]
    rows += _hint(page, verdict_remedy(report, texts, page.command))
    for note in report.notes:
        rows.append(element("p", prose(page.redact(texts.verdict(note.code, note.values)))))
        rows += _hint(page, remedy(note.code, note.values, texts, page.command))
    if report.gpu is None and report.providers:
        rows.append(element("p", texts.verdict("model-cpu-alone")))
    rows += [element("p", page.redact(line), class_="dim") for line in report.evidence]
    return rows


def _hint(page: Page, text: str) -> list[Markup]:
    return [element("p", prose(page.redact(text)), class_="dim")] if text else []


def _advice(page: Page, texts: Texts) -> list[Markup]:
    if page.advice is None:
        return []
    rows = [
        element("li", prose(page.redact(texts.advice(row))), data_advice=row.code)
        for row in page.advice.rows
    ]
    made = [element("ul", *rows)]
    if page.advice.options is not None:
        made.append(element("p", texts.label("page-paste"), class_="dim"))
        made.append(element("pre", element("code", option_text(page.advice.options))))
    return made


def _pairs(page: Page, rows: Sequence[tuple[str, str]]) -> Markup:
    made = [
        part
        for head, text in rows
        if text
        for part in (element("dt", head), element("dd", page.redact(text)))
    ]
    return element("dl", *made) if made else Markup("")


def _placement(page: Page, texts: Texts) -> list[Markup]:
    report = page.report
    drawn = [
        (row.provider, row.ms, texts.label("model-nodes", nodes=row.nodes, ms=row.ms))
        for row in report.providers
    ]
    columns = [
        Column(texts.label("page-provider")),
        Column(texts.label("page-nodes"), number=True),
        Column(texts.label("page-ms"), number=True),
    ]
    cells: list[list[Cell]] = [
        [(row.provider, None), (str(row.nodes), row.nodes), _number(row.ms)]
        for row in report.providers
    ]
    shares = table(texts.label("model-placement"), columns, cells)
    rows = [(row.head, row.text) for row in traffic_rows(report, texts)]
    return [bars(texts.label("model-placement"), drawn), shares, _pairs(page, rows)]


def _fallbacks(page: Page, texts: Texts) -> Markup:
    columns = [
        Column(texts.label("page-node")),
        Column(texts.label("page-operator")),
        Column(texts.label("page-reason")),
        Column(texts.label("page-ms"), number=True),
    ]
    rows: list[list[Cell]] = [
        [
            (page.redact(row.name), None),
            (row.op, None),
            (texts.label(f"why-{row.why}"), None),
            _number(row.ms),
        ]
        for row in sorted(page.report.fallbacks, key=lambda row: row.why in FREE)
    ]
    sort = texts.label("page-sort", column="{column}")
    return table(texts.label("model-fallbacks"), columns, rows, sort=sort)


def _outputs(page: Page, texts: Texts) -> Markup:
    columns = [
        Column(texts.label("page-output")),
        Column(texts.label("model-shapes")),
        Column(texts.label("page-deviation"), number=True),
        Column(texts.label("page-tolerance"), number=True),
    ]
    rows: list[list[Cell]] = [
        [
            (page.redact(row.name), None),
            (str(row.shape + 1), row.shape),
            (row.problem or "?", None)
            if row.deviation is None
            else (f"{row.deviation:.2g}", row.deviation),
            (f"{row.tolerance:g}", row.tolerance),
        ]
        for row in page.report.checked
    ]
    return table(texts.label("model-outputs"), columns, rows)


def _times(page: Page, texts: Texts) -> list[Markup]:
    bench = page.bench
    if bench is None:
        return []
    titles = ("first", "warm", "median", "spread", "runs", "changed", "create")
    columns = [
        Column(texts.label("page-configuration")),
        *(Column(texts.label(f"page-{title}"), number=True) for title in titles),
    ]
    created = bench.create_ms
    alone = len({row.key for row in bench.timings}) == 1
    made = [_by_shape(bench, texts)] if alone else []
    for number, shapes in enumerate(bench.shapes):
        heading = texts.label("page-shape", number=number + 1, shapes=say_shapes(shapes))
        drawn: list[tuple[str, float, str]] = []
        rows: list[list[Cell]] = []
        for each in bench.configurations:
            row, called = bench.at(each.key, number), name(each, bench, texts)
            if row.median_ms is not None:
                drawn.append((called, row.median_ms, f"{_shown(row.median_ms)} ms"))
            if row.first_ms is None:
                continue
            spread = f"{_shown(row.low_ms)} – {_shown(row.high_ms)}"
            rows.append(
                [
                    (called, None),
                    _number(row.first_ms),
                    (", ".join(_shown(ms) for ms in row.warm_ms) or "–", None),
                    _number(row.median_ms),
                    (spread if row.low_ms is not None else "–", None),
                    (str(row.runs), row.runs),
                    _number(row.changed_ms),
                    _number(created.get(each.key)),
                ]
            )
        made += [
            element("h3", heading),
            Markup("") if alone else bars(heading, drawn),
            table(heading, columns, rows, sort=texts.label("page-sort", column="{column}")),
        ]
    made += [
        element(
            "p", f"{row.key}: {texts.label('bench-failed', error=page.redact(row.error[:300]))}"
        )
        for row in bench.failed
    ]
    return made + [
        element("p", texts.label("bench-ended", what=what)) for what in bench.ended_early
    ]


def _by_shape(bench: Bench, texts: Texts) -> Markup:
    """Return one bar for each shape, where there is nothing else to compare."""
    drawn = [
        (say_shapes(bench.shapes[row.shape]), row.median_ms, f"{_shown(row.median_ms)} ms")
        for row in bench.timings
        if row.median_ms is not None
    ]
    return bars(texts.label("bench"), drawn)


def _findings(page: Page, texts: Texts) -> Markup:
    if not page.findings:
        return element("p", texts.label("page-no-findings"))
    rows = [
        element("li", prose(page.redact(f"{summary} – {remedy}" if remedy else summary)))
        for summary, remedy in page.findings
    ]
    return element("ul", *rows)


def _libraries(page: Page, texts: Texts) -> Markup:
    titles = ("page-library", "page-version", "page-file")
    columns = [Column(texts.label(title)) for title in titles]
    rows: list[list[Cell]] = [
        [(row.name, None), (row.version or "–", None), (page.redact(row.path), None)]
        for row in page.libraries
    ]
    return table(texts.label("loaded"), columns, rows)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _number(value: float | None) -> Cell:
    return (_shown(value), value)
