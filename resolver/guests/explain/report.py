"""What a log says, and what this machine says of it, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...log_lines.explanations import Explanation, LogLine
from ...messages.catalog import Texts
from ...messages.sections import STYLES, Row, Section
from .here import Here
from .mending import Mending

STATES = {"confirmed": "bold", "not-so": "green", "unseen": "dim"}
MOST_SOURCES = 2


def explanation_sections(
    explanations: Sequence[Explanation],
    texts: Texts,
    here: Sequence[Here] = (),
    mending: Mending | None = None,
    *,
    command: str = "",
    origins: Mapping[str, str] | None = None,
    place: Callable[[int], str] = str,
) -> tuple[Section, ...]:
    """Say what a log tells, what this machine says of each, and what mends it.

    `here`: one for each explanation, or none; `command`: the whole command of `mending`; `origins`:
    the kinds of programs by their codes; `place`: what a line is called.
    """
    sections: list[Section] = []
    for number, each in enumerate(explanations):
        said = here[number] if number < len(here) else None
        name = (origins or {}).get(each.origin or "", "")
        rows = _rows(each, said, name, texts, place)
        told = mending is not None
        others = [x for x in each.commands if not (told and _told_below(x, command))]
        owner = f"  # {texts.label('for-owner')}"
        rows += [Row(text=f"$ {line}{owner * (line in each.owner_commands)}") for line in others]
        rows += [Row(text=source, style="dim") for source in each.sources[:MOST_SOURCES]]
        sections.append(Section(heading=each.code, rows=tuple(rows)))
    if not explanations:
        rows = [Row(text=texts.label("explained-nothing"))]
        if mending is None or mending.why.code != "mend-ask":
            rows.append(Row(text=texts.label("explained-next")))
        sections.append(Section(rows=tuple(rows)))
    if mending is not None:
        rows = [Row(text=texts.reason(mending.why), style="bold")]
        if mending.finding is not None:
            rows += [Row(text=texts.summary(mending.finding))]
            rows += [Row(text=text) for text in (texts.remedy(mending.finding),) if text]
        if command:
            rows.append(Row(text=command, whole=True))
        sections.append(Section(rows=tuple(rows)))
    return tuple(sections)


def _told_below(line: str, command: str) -> bool:
    """Whether the last lines say what is to be typed instead: a command, or that there is none."""
    return line.startswith("ortgpu-fix") and (bool(command) or line.endswith("--apply"))


def _rows(
    each: Explanation, here: Here | None, origin: str, texts: Texts, place: Callable[[int], str]
) -> list[Row]:
    rows = [Row(text=text, style="dim") for text in _seen(each.evidence, place)]
    rows.append(Row(text=each.cause, style=STYLES[each.severity]))
    if each.consequences:
        rows.append(Row(text=texts.label("explained-follows", codes=", ".join(each.consequences))))
    if here is not None:
        rows += [
            Row(text=texts.label(f"here-{here.state}", what=what), style=STATES[here.state])
            for what in _said(here, texts)
        ]
    if origin:
        rows.append(Row(text=texts.label("explained-origin", program=origin), style="dim"))
    rows.append(Row(text=each.remedy))
    return rows


def _seen(evidence: Sequence[LogLine], place: Callable[[int], str]) -> list[str]:
    """Return `2, 18: TEXT`: one text for each line, and the lines of the same text together."""
    texts = {seen.line_number: seen.line.strip() for seen in reversed(evidence)}
    lines: dict[str, list[str]] = {}
    for number, text in sorted(texts.items()):
        lines.setdefault(text, []).append(place(number))
    return [f"{', '.join(places)}: {text}" for text, places in lines.items()]


def _said(here: Here, texts: Texts) -> list[str]:
    """Return what the machine says, one sentence for each thing that was seen."""
    said = list(dict.fromkeys(texts.summary(each) for each in here.findings))
    if here.why is not None:
        said.append(texts.reason(here.why))
    return said


def explanation_json(
    explanations: Sequence[Explanation],
    texts: Texts,
    here: Sequence[Here] = (),
    mending: Mending | None = None,
    command: str = "",
) -> dict[str, object]:
    """Return the same as one document; `here` is null where nobody looked."""
    rows: list[dict[str, object]] = []
    for number, each in enumerate(explanations):
        row: dict[str, object] = each._asdict()
        row["certainty"] = "named" if row.pop("certain") else "general"
        row["evidence"] = [seen._asdict() for seen in each.evidence]
        said = here[number] if number < len(here) else None
        row["here"] = said and {
            "state": said.state,
            "says": _said(said, texts),
            "findings": [found.code for found in said.findings],
        }
        rows.append(row)
    document: dict[str, object] = {"schema": 1, "explanations": rows}
    if mending is not None:
        document["mending"] = {
            "code": mending.why.code,
            "text": texts.reason(mending.why),
            "command": command or None,
        }
    return document
