"""What becomes of requirements files, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import Error
from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..requirements.files import RewrittenFile


def requirements_json(files: Iterable[RewrittenFile]) -> list[dict[str, object]]:
    """Return the rows of `requirements` in the document of a plan.

    `after` is null where a line stays, and `done` says what is done with it.
    """
    return [
        {
            "file": str(file.path),
            "line": edit.line,
            "before": _sane(edit.before),
            "after": None if edit.after is None else _sane(edit.after),
            "done": edit.done,
        }
        for file in files
        for edit in file.edits
    ]


def unwritten_json(unwritten: Mapping[Path, Error], texts: Texts) -> dict[str, object]:
    """Return the field `unwritten` of the document: which files are not written, and why."""
    rows = [
        {"file": str(path), "code": error.code, "message": texts.error(error).text}
        for path, error in unwritten.items()
    ]
    return {"unwritten": rows} if rows else {}


def requirements_section(files: Iterable[RewrittenFile], texts: Texts, *, written: bool) -> Section:
    """Say which lines are replaced, and which stay and why; `written`: it is done."""
    rows: list[Row] = []
    replaced = False
    for path, edit in ((file.path, edit) for file in files for edit in file.edits):
        head = texts.label("mend-line", file=path, line=edit.line)
        if edit.after is None:
            why = texts.label(f"mend-{edit.done}")
            rows.append(Row(head=head, text=f"{_sane(edit.before)}  ({why})", style="yellow"))
            continue
        replaced = True
        rows.append(Row(head=head, text=f"{_sane(edit.before)}  →  {_sane(edit.after)}"))
    if replaced and not written:
        rows.append(Row(text=texts.label("mend-write"), style="dim"))
    heading = texts.label("mend-written" if written else "mend-should")
    return Section(heading=heading, rows=tuple(rows))


def _sane(text: str) -> str:
    """Return `text` without what no output can show."""
    return text.encode("utf-8", "replace").decode()
