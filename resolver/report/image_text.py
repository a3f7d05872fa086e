"""What a Dockerfile or a compose file tells, in words and as JSON.

Returns sections and documents, prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..image.text import JudgedText
from ..matrix.model import Matrix
from ..messages.catalog import Texts
from ..messages.sections import STYLES, Row, Section
from .image import serves_row, serving_json
from .plan_document import SCHEMA, findings_json, reasons_json

CHECK = "ortgpu-fix check-image image.tar"


def text_sections(found: JudgedText, path: str, texts: Texts) -> tuple[Section, ...]:
    """Return the answer for people."""
    hosts = [
        Row(name, texts.label("diff-works"), style="green")
        if not why
        else Row(name, f"✗ {texts.reason(why[0])}", style="red")
        for name, why in found.hosts
    ]
    serves = [serves_row(found.serving, texts)] if found.serving else []
    elsewhere = tuple(
        Row(head=texts.label("text-line", line=line), text=what) for line, what in found.elsewhere
    )
    end = [Row(text=texts.label("text-wrong"), style="bold")]
    if not found.wrong:
        end = [Row(text=texts.label("text-right"), style="bold green")]
        end += [Row(text=f"docker save IMAGE -o image.tar && {CHECK}", whole=True)]
    sections = (
        Section(
            heading=texts.label("text-heading", path=path),
            rows=(*serves, *_findings(found, texts)),
        ),
        Section(heading=texts.label("diff-hosts"), rows=tuple(hosts)),
        Section(heading=texts.label("text-elsewhere"), rows=elsewhere),
        Section(rows=tuple(end)),
    )
    return tuple(section for section in sections if section.rows)


def _findings(found: JudgedText, texts: Texts) -> Iterator[Row]:
    for line, each in found.told:
        head = texts.label("text-line", line=line)
        yield Row(head=head, text=texts.summary(each), style=STYLES[each.severity])
        yield Row(text=f"→ {texts.remedy(each)}")


def text_json(
    found: JudgedText, path: str, verdict: str, matrix: Matrix, texts: Texts
) -> dict[str, object]:
    """Return the document that `check-image` prints of a text; `texts` must be English."""
    findings = findings_json((row.finding for row in found.told), texts)
    return {
        "schema": SCHEMA,
        "text": path,
        "verdict": verdict,
        "serves": found.serving and serving_json(found.serving),
        "findings": [
            {"line": row.line, **each} for row, each in zip(found.told, findings, strict=True)
        ],
        "machines": [
            {"name": name, "reasons": reasons_json(why, texts)} for name, why in found.hosts
        ],
        "from_image": [{"line": line, "what": what} for line, what in found.elsewhere],
        "matrix": {"date": matrix.date, "digest": matrix.digest},
    }
