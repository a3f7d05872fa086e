"""A verification, in words."""

from __future__ import annotations

from pathlib import PurePath

from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..verify.verification import UP_TO_THE_DRIVER, Verification

_SITE = "site-packages"


def verification_sections(
    verification: Verification, texts: Texts, *, verbose: bool = True, elsewhere: bool = False
) -> tuple[Section, ...]:
    """Say what the verification saw, what it proves and what it does not.

    Without `verbose` what it saw is left out where nothing is wrong; `elsewhere`: it was done for
    another machine, so that what this one lacks needs no remedy.
    """
    code, values = verification.verdict, verification.values
    good, as_far = code == "works", code in UP_TO_THE_DRIVER
    style = "bold green" if good else "bold" if as_far else "bold red"
    rows = [Row(text=texts.verdict(code, values), style=style)]
    for key in ("proves",) if as_far and elsewhere else ("proves", "hint"):
        text = texts.verdict(code, values, key)
        if text:
            rows.append(Row(text=text))
    for note in verification.notes:
        rows.append(Row(text=texts.verdict(note.code, note.values)))
        hint = texts.verdict(note.code, note.values, "hint")
        if hint:
            rows.append(Row(text=hint, style="dim"))
    sections = [Section(heading=texts.label("verification"), rows=tuple(rows))]
    if verbose or not (good or as_far):
        evidence = [Row(text=line, style="dim") for line in verification.evidence]
        sections.append(Section(heading=texts.label("seen"), rows=tuple(evidence)))
        sections += _loaded(verification, texts)
    return tuple(section for section in sections if section.rows)


def _loaded(verification: Verification, texts: Texts) -> list[Section]:
    """List the libraries by the folder that they are from, which is long."""
    folders: dict[str, list[Row]] = {}
    for library in verification.libraries:
        path = PurePath(library.path)
        at = path.parts.index(_SITE) + 1 if _SITE in path.parts else len(path.parts) - 1
        row = Row(head=library.name, text=str(PurePath(*path.parts[at:])), style="dim")
        folders.setdefault(str(PurePath(*path.parts[:at])), []).append(row)
    return [
        Section(heading=texts.label("loaded-from", folder=folder), rows=tuple(rows))
        for folder, rows in folders.items()
    ]
