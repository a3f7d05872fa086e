"""A page about a user's model, to send to a colleague: one file that needs nothing else.

Core. What is on it is what the command prints; where a row has a time, it has a bar, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from ...messages.catalog import Texts
from ...messages.sections import Row, Section
from ...report.page_parts import Markup, bars, document, element, prose, section
from .bench import Bench
from .model_report import ModelReport
from .report import name, shape_heading

_CLASSES = {
    "bold": "verdict",
    "bold green": "verdict good",
    "bold red": "verdict bad",
    "red": "bad",
    "dim": "dim",
}
"""How a style of the terminal is shown."""


def render(
    sections: Iterable[Section],
    bars_of: Mapping[str, Mapping[str, float]],
    texts: Texts,
    *,
    title: str,
    made: str,
    redact: Callable[[str], str],
) -> str:
    """Return `sections` as HTML.

    `bars_of`: how long the bars are, by heading and head (`times_by_row`). `made`: by which release
    of this program, and when. `redact` takes homes and secrets out of a text.
    """
    parts = [element("h1", redact(title))]
    for each in sections:
        lengths, heading = bars_of.get(each.heading, {}), redact(each.heading)
        drawn = [
            (redact(row.head), lengths[row.head], redact(row.text))
            for row in each.rows
            if row.head in lengths
        ]
        others = [row for row in each.rows if row.text and row.head not in lengths]
        parts.append(section(heading, bars(heading, drawn), *_lines(others, redact)))
    return document(texts.language, redact(title), *parts, element("p", made, class_="dim"))


def _lines(rows: Sequence[Row], redact: Callable[[str], str]) -> Iterable[Markup]:
    for paired, each in groupby(rows, key=lambda row: bool(row.head)):
        if paired:
            pairs = [(row, prose(redact(row.text))) for row in each]
            cells = (
                part
                for row, text in pairs
                for part in (
                    element("dt", redact(row.head)),
                    element("dd", text, class_=_CLASSES.get(row.style)),
                )
            )
            yield element("dl", *cells)
            continue
        for row in each:
            if row.unwrapped:
                yield element("pre", element("code", redact(row.text)))
            else:
                yield element("p", prose(redact(row.text)), class_=_CLASSES.get(row.style))


def times_by_row(
    report: ModelReport, bench: Bench | None, texts: Texts
) -> dict[str, dict[str, float]]:
    """Return the milliseconds of the rows that have a bar, by heading and head."""
    found = {texts.label("model-placement"): {row.provider: row.ms for row in report.providers}}
    if bench:
        called = {each.key: name(each, bench, texts) for each in bench.configurations}
        for row in bench.timings:
            if row.median_ms is not None and row.key in called:
                heading = shape_heading(bench, row.shape, texts)
                found.setdefault(heading, {})[called[row.key]] = row.median_ms
    return found
