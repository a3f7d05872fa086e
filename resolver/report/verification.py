"""A verification, in words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..messages.shells import PROGRAM, TypedCommand
from ..plan.reasons import Reason, Values
from ..verify.verification import UP_TO_THE_DRIVER, Verification, VerificationVerdict

_SITE = "site-packages"


def verification_sections(
    verification: Verification,
    texts: Texts,
    *,
    verbose: bool = True,
    elsewhere: bool = False,
    command: TypedCommand = PROGRAM,
) -> tuple[Section, ...]:
    """Say what the verification saw, what it proves and what it does not.

    Without `verbose` what it saw is left out where nothing is wrong; `elsewhere`: it was done for
    another machine, so that what this one lacks needs no remedy. `command`: this program, with the
    flags that were given.
    """
    code, values = verification.verdict, verification.values
    good, as_far = code == "works", code in UP_TO_THE_DRIVER
    rows = [Row(text=texts.verdict(code, values), style=verdict_style(code))]
    notes = note_rows(verification.notes, texts, command)
    remedied = code == "crashed" and any(row.style for row in notes)  # by what explains it
    hint = "" if (as_far and elsewhere) or remedied else remedy(code, values, texts, command)
    rows += [Row(text=text) for text in (texts.verdict(code, values, "proves"), hint) if text]
    rows += notes
    sections = [Section(heading=texts.label("verification"), rows=tuple(rows))]
    if verbose or not (good or as_far):
        evidence = [Row(text=line, style="dim") for line in verification.evidence]
        sections.append(Section(heading=texts.label("seen"), rows=tuple(evidence)))
        sections += _loaded(verification, texts)
    return tuple(section for section in sections if section.rows)


def verdict_style(code: VerificationVerdict) -> str:
    """Return how a verdict is shown."""
    if code == "works":
        return "bold green"
    return "bold" if code in UP_TO_THE_DRIVER else "bold red"


def remedy(code: str, values: Values, texts: Texts, command: TypedCommand) -> str:
    """Return what helps against a verdict or what a note says; empty where nothing does.

    `command`: this program, with the flags that were given.
    """
    return texts.verdict(code, values, "hint", command=command)


def note_rows(notes: Iterable[Reason], texts: Texts, command: TypedCommand) -> list[Row]:
    """Return each note, and below it what helps."""
    rows = []
    for note in notes:
        rows.append(Row(text=texts.verdict(note.code, note.values)))
        if hint := remedy(note.code, note.values, texts, command):
            rows.append(Row(text=hint, style="dim"))
    return rows


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
