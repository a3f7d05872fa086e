"""The wheels that an index or uv chose for a plan, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from ..apply.chosen_wheels import ChosenWheel
from ..messages.catalog import Texts
from ..messages.sections import Row, Section, size


def resolved_json(chosen: Sequence[ChosenWheel]) -> list[dict[str, object]]:
    """Return the rows of `resolved` in the document of an apply, as those of `install` are."""
    return [
        {
            "name": chosen_wheel.wheel.name,
            "version": chosen_wheel.wheel.version,
            "index": chosen_wheel.place,
            "file": chosen_wheel.wheel.file,
            "sha256": chosen_wheel.wheel.sha256,
            "size": chosen_wheel.wheel.size or None,
        }
        for chosen_wheel in chosen
    ]


def resolved_sections(
    chosen: Sequence[ChosenWheel], texts: Texts, *, verbose: bool = False
) -> tuple[Section, ...]:
    """Say from which index each of `chosen` is, with its hash if `verbose`; nothing for none."""
    rows = []
    for wheel, place in chosen:
        bytes_ = f", {size(wheel.size)}" if wheel.size else ""
        head = f"+ {wheel.name} {wheel.version}"
        rows.append(Row(head=head, text=texts.label("from-index", index=place) + bytes_))
        if verbose:
            rows.append(Row(text=f"sha256:{wheel.sha256}", style="dim"))
    heading = texts.label("resolved")
    return (Section(heading=heading, rows=tuple(rows)),) if rows else ()
