"""What changes in the files of the user's project, in words and as JSON."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import Error
from ..messages.catalog import Texts
from ..messages.sections import Row, Section
from ..project.model import FileChange, Project

ONE_SYSTEM = {"pdm": "PDM", "pipenv": "Pipenv"}
"""Tools that lock one candidate of a name, by their own names."""


def project_section(
    project: Project, changes: Sequence[FileChange], texts: Texts, problem: Error | None = None
) -> Section:
    """Return the lines that change, as a diff, and the files that come; or why none does."""
    if problem is not None:
        said = texts.error(problem)
        rows = [Row(text=said.text), Row(text=said.hint)]
        return Section(heading=texts.label("project-kept", tool=project.tool), rows=tuple(rows))
    rows = []
    for change in changes:
        rows.append(Row(text=_shown(change.path, project), style="bold"))
        rows += [
            Row(text=line, style="green" if line.startswith("+") else "red")
            for line in _diff(change)
        ]
    if project.tool in ONE_SYSTEM:
        rows.append(Row(text=texts.label("project-one-system", tool=ONE_SYSTEM[project.tool])))
    return Section(heading=texts.label("project", tool=project.tool), rows=tuple(rows))


def project_json(
    project: Project, changes: Sequence[FileChange], *, written: bool
) -> dict[str, object]:
    """Return the field `project` of a plan's document."""
    return {
        "tool": project.tool,
        "root": str(project.root),
        "written": written,
        "files": [
            {"file": _shown(change.path, project), "diff": list(_diff(change))}
            for change in changes
        ],
    }


def _shown(path: Path, project: Project) -> str:
    shown = path.relative_to(project.root) if path.is_relative_to(project.root) else path
    return shown.as_posix()


def _diff(change: FileChange) -> Iterator[str]:
    """Yield the lines that go and come; none of a wheel or of a lock, which nobody reads."""
    if change.path.suffix in {".whl", ".lock"}:
        return
    before, after = ((part or b"").decode("utf-8", "replace") for part in change[1:])
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    for line in lines:
        if not line.startswith(("---", "+++", "@@")):
            yield f"{line[0]} {line[1:].strip()}"
