"""An image as one page (HTML): what it can serve, what is wrong, and its bytes by folder and layer.

Core. What is on it is what `--json` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..image.judged import JudgedEnvironment, JudgedImage
from ..messages.catalog import Texts
from ..messages.sections import Row, size
from .image import finding_rows, judged_rows, serves_row, weight_text
from .page_parts import Markup, bars, document, element, prose, section

_COLOURS = {"healthy": "good", "fixable": "", "impossible": "bad"}


def image_page(found: JudgedImage, name: str, verdict: str, made: str, texts: Texts) -> str:
    """Return the page; `made`: by which release of this program, and when."""
    title = texts.label("image-heading", path=name)
    said = texts.label(f"image-{verdict}")
    others = [f"{one.path} ({one.facts.python.version})" for one in found.others]
    return document(
        texts.language,
        title,
        element("h1", title),
        element("p", said, class_=f"verdict {_COLOURS[verdict]}".strip(), data_verdict=verdict),
        *(_environment(one, texts) for one in found.environments),
        section(texts.label("image-others"), *(element("p", each) for each in others)),
        section(texts.label("page-findings"), *_lines(finding_rows(found.findings, texts))),
        section(texts.label("image-by-layer"), *_layers(found, texts)),
        section(texts.label("image-weight"), _folders(found, texts)),
        element("p", made, class_="dim"),
    )


Cell = tuple[str, float | int | None]
"""What is shown, and the number that it stands for."""


class Column(NamedTuple):
    """A column of a table."""

    title: str
    number: bool = False


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
) -> Markup:
    """Return a table, which scrolls by itself where it is wider than the screen."""
    heads = [
        element(
            "th",
            column.title,
            scope="col",
            class_="number" if column.number else None,
        )
        for column in columns
    ]
    body = [
        element("tr", *(_cell(cell, column) for cell, column in zip(row, columns, strict=True)))
        for row in rows
    ]
    if not body:
        return Markup("")
    made = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
    )
    return element("div", made, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _cell(cell: Cell, column: Column) -> Markup:
    text, value = cell
    number = None if value is None else repr(value)
    return element("td", text, class_="number" if column.number else None, data_value=number)


def _environment(one: JudgedEnvironment, texts: Texts) -> Markup:
    heading = f"{one.environment.path} (Python {one.environment.facts.python.version})"
    parts = [*_lines([serves_row(one.serving, texts)])]
    for machine, plan in one.plans:
        parts += [element("h3", machine)] if machine else []
        parts += _lines(judged_rows(plan, texts))
    return section(heading, *parts)


def _lines(rows: Iterable[Row]) -> list[Markup]:
    return [element("p", prose(row.text)) for row in rows]


def _layers(found: JudgedImage, texts: Texts) -> list[Markup]:
    """Return what the layers weigh, the CUDA in each, and what each loses of those below."""
    titles = ("image-layer", "image-name", "image-bytes", "image-cuda-bytes", "image-lost-bytes")
    columns = [Column(texts.label(title), number=title != "image-name") for title in titles]
    cuda = [0] * len(found.layers)
    for row in found.holdings:
        for number, count in row.layers:
            cuda[number] += count
    rows: list[list[Cell]] = [
        [
            (str(number + 1), number + 1),
            (layer.name, None),
            *(_megabytes(count) for count in (layer.size, cuda[number], layer.lost)),
        ]
        for number, layer in enumerate(found.layers)
    ]
    drawn = [
        (f"{texts.label('image-layer')} {number + 1}", layer.size, size(layer.size))
        for number, layer in enumerate(found.layers)
    ]
    heading = texts.label("image-by-layer")
    whole = element("p", weight_text(found, texts))
    return [whole, bars(heading, drawn), table(heading, columns, rows)]


def _folders(found: JudgedImage, texts: Texts) -> Markup:
    """Return the folders with CUDA: what of each is elsewhere too, and whether it is used."""
    titles = ("image-folder", "image-bytes", "image-layer", "image-also", "image-used")
    columns = [
        Column(texts.label(title), number=title in {"image-bytes", "image-also"})
        for title in titles
    ]
    rows: list[list[Cell]] = [
        [
            (row.path, None),
            _megabytes(row.size),
            (", ".join(str(number + 1) for number, _ in row.layers), row.layers[0][0] + 1),
            _megabytes(row.twice_size),
            (texts.label("image-used" if row.used else "image-unused"), int(row.used)),
        ]
        for row in found.holdings
    ]
    return table(texts.label("image-weight"), columns, rows)


def _megabytes(count: int) -> Cell:
    return (f"{count / 1e6:.1f}", count)
