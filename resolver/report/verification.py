"""A verification, in words."""

from __future__ import annotations

from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..verify.model import UP_TO_THE_DRIVER, Verification


def verification_sections(verification: Verification, texts: Texts) -> tuple[Section, ...]:
    """Say what the verification saw, what it proves and what it does not."""
    code, values = verification.verdict, verification.values
    good = code == "works"
    style = "bold green" if good else "bold" if code in UP_TO_THE_DRIVER else "bold red"
    rows = [Row(text=texts.verdict(code, values), style=style)]
    for key in ("proves", "hint"):
        text = texts.verdict(code, values, key)
        if text:
            rows.append(Row(text=text))
    for note in verification.notes:
        rows.append(Row(text=texts.verdict(note.code, note.values)))
        hint = texts.verdict(note.code, note.values, "hint")
        if hint:
            rows.append(Row(text=hint, style="dim"))
    evidence = [Row(text=line, style="dim") for line in verification.evidence]
    libraries = [Row(head=row.name, text=row.path, style="dim") for row in verification.libraries]
    sections = (
        Section(heading=texts.label("verification"), rows=tuple(rows)),
        Section(heading=texts.label("seen"), rows=tuple(evidence)),
        Section(heading=texts.label("loaded"), rows=tuple(libraries)),
    )
    return tuple(section for section in sections if section.rows)
