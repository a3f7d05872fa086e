"""What a log says, and what this machine says of it, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ...log_lines.explanations import Explanation, LogLine
from ...messages.catalog import Texts
from ...messages.sections import Row, Section
from ...report.steps import NVIDIA
from .fix import Fix
from .observation import Observation

STATES = {"confirmed": "bold", "not-so": "green", "unseen": "dim"}
MOST_SHOWN = 3
"""So many different lines are shown of one."""


def explanation_sections(
    explanations: Sequence[Explanation],
    texts: Texts,
    observations: Sequence[Observation] = (),
    fix: Fix | None = None,
    *,
    command: str = "",
    installs: Sequence[str] = (),
    machine: str = "",
    origins: Mapping[str, str] | None = None,
    place: Callable[[int], str] = str,
) -> tuple[Section, ...]:
    """Say what a log says, what the machine says of each, and what fixes it.

    `observations`: one for each explanation, or none; `command`: the whole command of `fix`;
    `installs`: what it would install; `machine`: what the machine that was looked at is called;
    `origins`: the kinds of programs by their codes; `place`: where a line is.
    """
    sections: list[Section] = []
    for number, each in enumerate(explanations):
        said = observations[number] if number < len(observations) else None
        severity = texts.label(f"severity-{each.severity}")
        seen = tuple(Row(text=text, style="dim") for text in _seen(each.evidence, place))
        sections.append(Section(heading=f"{severity}[{each.code}]: {each.what}", rows=seen))
        said_already = each.cause.rstrip(".。") == each.what
        head = texts.label("explain-cause")
        rows = [] if said_already else [Row(head=head, text=each.cause)]
        rows += _looked(said, machine, texts)
        name = (origins or {}).get(each.origin or "", "")
        rows += [Row(text=texts.label("explained-origin", program=name))] if name else []
        fixes = fix is not None and bool(command) and fix.code == each.code
        rows += _fix(each, fix if fixes else None, command, installs, texts)
        rows += _more(each, texts, asks=(said is None or said.state == "unseen") and not installs)
        sections.append(Section(rows=tuple(rows)))
    if not explanations:
        sections.append(Section(rows=(Row(text=texts.label("explained-nothing")),)))
    fixed = command and fix is not None and fix.code in _codes(explanations)
    if fix is not None and not fixed and not _is_said(fix):
        rows = [Row(text=texts.reason(fix.why), style="bold")]
        if fix.finding is not None:
            rows += [Row(text=texts.summary(fix.finding))]
            rows += [Row(text=text) for text in (texts.remedy(fix.finding),) if text]
        if command:
            rows.append(Row(text=command, unwrapped=True))
        sections.append(Section(rows=tuple(rows)))
    return tuple(sections)


def _is_said(fix: Fix) -> bool:
    """Return whether it says only that a person does what stands under `fix:`."""
    return fix.why.code in {"mend-by-hand", "mend-other-program"} and fix.finding is None


def _codes(explanations: Sequence[Explanation]) -> set[str]:
    return {each.code for each in explanations}


def _fix(
    each: Explanation,
    fix: Fix | None,
    command: str,
    installs: Sequence[str],
    texts: Texts,
) -> list[Row]:
    """Say what fixes one: the command of its `fix`, else what a person has to do."""
    head = texts.label("explain-fix")
    if fix is not None:
        command_is_all = (each.fixable or each.effect) and fix.why.code != "mend-by-besides"
        rows = [] if command_is_all else [Row(head=head, text=each.remedy)]
        rows.append(Row(head="" if rows else head, text=texts.reason(fix.why)))
        rows += [Row(text=line, unwrapped=True) for line in command.split("\n")]
        return [*rows, Row(text=_installed(installs, texts))] if installs else rows
    rows = [Row(head=head, text=each.remedy)]
    owner = f"  # {texts.label('for-owner')}"
    # the other commands of this program are shown at the end, as they are for that machine
    commands = [line for line in each.commands if not re.match("ortgpu-fix(?! download)", line)]
    rows += [Row(text=f"{x}{owner * (x in each.owner_commands)}", unwrapped=True) for x in commands]
    return rows


def _installed(installs: Sequence[str], texts: Texts) -> str:
    """Say what a command would install, the wheels of NVIDIA together."""
    nvidia = [each for each in installs if each.startswith(NVIDIA)]
    listed = [each for each in installs if each not in nvidia]
    together = len(nvidia) > 1
    listed += [texts.label("components", count=len(nvidia))] if together else nvidia
    return texts.label("explain-installs", packages=texts.listed(listed))


def _more(each: Explanation, texts: Texts, *, asks: bool) -> list[Row]:
    """Ask what decides, say what follows from it, and where it was seen."""
    texts_by_label = {
        "explain-ask": each.ask if asks else "",
        "explain-also": ", ".join(each.consequences),
        "explain-more": next(iter(each.sources), ""),
    }
    return [Row(head=texts.label(x), text=text) for x, text in texts_by_label.items() if text]


def _looked(observation: Observation | None, machine: str, texts: Texts) -> list[Row]:
    """Say what the machine that was looked at says of it."""
    if observation is None:
        return []
    what = texts.label("semicolon").join(_said(observation, texts))
    state = texts.label(f"here-{observation.state}", what=what)
    return [Row(head=f"{machine}:", text=state, style=STATES[observation.state])]


def _seen(evidence: Sequence[LogLine], place: Callable[[int], str]) -> list[str]:
    """Return `--> error.log:2, 18` and `|  TEXT`: the lines of the same text together."""
    texts = {seen.line_number: seen.message for seen in reversed(evidence)}
    lines: dict[str, list[int]] = {}
    for number, text in sorted(texts.items()):
        lines.setdefault(text, []).append(number)
    shown = list(lines.items())[:MOST_SHOWN]
    return [
        row
        for text, numbers in shown
        for row in (f"--> {', '.join(map(place, numbers))}", f" |  {text}")
    ]


def _said(observation: Observation, texts: Texts) -> list[str]:
    """Return what the machine says, one sentence for each thing that was seen."""
    said = list(dict.fromkeys(texts.summary(each) for each in observation.findings))
    if observation.why is not None:
        said.append(texts.reason(observation.why))
    return said


def explanation_json(
    explanations: Sequence[Explanation],
    texts: Texts,
    observations: Sequence[Observation] = (),
    fix: Fix | None = None,
    *,
    command: str = "",
    installs: Sequence[str] = (),
) -> dict[str, object]:
    """Return the same as one document; `observations` is null where nobody looked."""
    rows: list[dict[str, object]] = []
    for number, each in enumerate(explanations):
        row: dict[str, object] = each._asdict()
        row["certainty"] = "named" if row.pop("certain") else "general"
        row["evidence"] = [seen._asdict() for seen in each.evidence]
        said = observations[number] if number < len(observations) else None
        row["here"] = said and {
            "state": said.state,
            "says": _said(said, texts),
            "findings": [found.code for found in said.findings],
        }
        rows.append(row)
    document: dict[str, object] = {"schema": 1, "explanations": rows}
    if fix is not None:
        document["mending"] = {
            "code": fix.why.code,
            "text": texts.reason(fix.why),
            "command": command or None,
            "installs": list(installs),
        }
    return document
