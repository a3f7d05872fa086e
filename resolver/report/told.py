"""What a pasted text tells of a machine, in words and as JSON."""

from __future__ import annotations

from collections.abc import Callable

from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..pasted.choice import Contradiction
from ..pasted.machine import ToldMachine


def told_sections(
    machine: ToldMachine, texts: Texts, place: Callable[[int], str] = str
) -> tuple[Section, ...]:
    """Return a line for each fact that a text tells, and for each that it contradicts itself in.

    `place`: what a line is called.
    """
    rows = [
        Row(text=texts.label(f"told-{each.fact}", value=each.value, line=place(each.line)))
        for each in machine.told
    ]
    rows += [Row(text=_contradiction(each, texts, place)) for each in machine.contradictions]
    return (Section(rows=tuple(rows)),) if rows else ()


def unknown_names(machine: ToldMachine, texts: Texts, *, python: bool = True) -> str:
    """Return what a plan has to know and the text does not tell: `the driver, the GPU`.

    `python`: whether it tells that the program runs on Python's packages.
    """
    unknown = (*machine.unknown, *(() if python else ("program",)))
    return texts.label("list-comma").join(texts.label(f"fact-{each}") for each in unknown)


def _contradiction(each: Contradiction, texts: Texts, place: Callable[[int], str]) -> str:
    comma = texts.label("list-comma")
    return texts.label(
        "told-first" if each.taken else "told-neither",
        fact=each.package or texts.label(f"fact-{each.fact}"),
        values=comma.join(each.values),
        lines=comma.join(map(place, each.lines)),
    )


def told_json(machine: ToldMachine) -> dict[str, object]:
    """Return the same as one object: `unknown` is what a plan would have to know."""
    return {
        "told": [each._asdict() for each in machine.told],
        "contradictions": [each._asdict() for each in machine.contradictions],
        "unknown": list(machine.unknown),
    }
