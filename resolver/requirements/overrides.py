"""Add to the pyproject.toml of a uv or PDM project what keeps the CPU build away.

Where another distribution requires onnxruntime, the project has no line to replace: the CPU build
comes with the next `uv sync` or `pdm sync`. The project needs the GPU build as a requirement, and
what takes the requirement of onnxruntime away: an override for uv
(https://docs.astral.sh/uv/concepts/resolution/#dependency-overrides), an exclusion for PDM
(https://pdm-project.org/en/latest/usage/dependency/#exclude-specific-packages). Poetry has neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from packaging.utils import canonicalize_name

from ..facts.model import CPU_BUILD, GPU_BUILD
from ..facts.project_tool import LOCKS
from ..utils.toml import tomllib
from ..versions import requirement
from .rewrite import Edit, RewrittenText
from .rewrite_pyproject import (
    Document,
    Path,
    list_at,
    parses_as_changed,
    table_at,
    with_python,
)

OVERRIDE = f"{CPU_BUILD}; sys_platform == 'never'"
_DEPENDENCIES: Path = ("project", "dependencies")
_EXCLUSIONS: dict[str, tuple[Path, str]] = {
    "uv": (("tool", "uv", "override-dependencies"), OVERRIDE),
    "pdm": (("tool", "pdm", "resolution", "excludes"), CPU_BUILD),
}
"""By the tool, the list that takes a requirement away, and what is put into it."""


def project_tool(locks: Collection[str], text: str) -> str | None:
    """Return the tool that can exclude and manages a project: by its lock file, or its table.

    Raises tomllib.TOMLDecodeError.
    """
    document = tomllib.loads(text)
    return next(
        (
            tool
            for tool in _EXCLUSIONS
            if LOCKS[tool] in locks or table_at(document, ("tool", tool))
        ),
        None,
    )


def exclude_cpu_build(
    text: str, version: str, tool: str, python: str | None = None, *, member: bool = False
) -> RewrittenText:
    """Return pyproject.toml with onnxruntime-gpu `version` required and the CPU build excluded.

    `python`: the oldest that this is for, where the project allows an older one; `member`: its root
    excludes. What is there already stays, and no project is made. Raises tomllib.TOMLDecodeError.
    """
    edits: list[Edit] = []
    exclusions, excluding = _EXCLUSIONS[tool]
    if python is not None and excluding == OVERRIDE:
        excluding = f"{CPU_BUILD}; python_version < '{python}'"
    wanted = (
        (_DEPENDENCIES, GPU_BUILD, with_python(f"{GPU_BUILD}=={version}", python)),
        (exclusions, CPU_BUILD, excluding),
    )
    for path, name, value in wanted[: 1 if member else None]:
        document = tomllib.loads(text)
        if name in _names(document, path) or (path == _DEPENDENCIES and "project" not in document):
            continue
        where = f"[{'.'.join(map(str, path[:-1]))}] {path[-1]}"
        added = next(_additions(text, document, path, value), None)
        if added is None:
            edits.append(Edit(line=1, before=where, after=None, done="odd"))
        else:
            text, line = added
            edits.append(Edit(line=line, before=where, after=value, done="added"))
    return RewrittenText(text=text, edits=tuple(edits))


def _names(document: Document, path: Path) -> set[str]:
    texts = (row for row in list_at(document, path) if isinstance(row, str))
    return {canonicalize_name(row.name) for row in map(requirement, texts) if row is not None}


def _additions(text: str, document: Document, path: Path, value: str) -> Iterator[tuple[str, int]]:
    """Yield the texts with `value` in the list at `path` that parse to just that, and its line."""
    key, parents = str(path[-1]), [str(name) for name in path[:-1]]
    quoted = json.dumps(value)
    end = "\r\n" if "\r\n" in text else "\n"

    def change(changed: Document) -> None:
        table = changed
        for name in parents:
            inner = table.setdefault(name, {})
            assert isinstance(inner, dict)  # noqa: S101 - `table_at` has looked
            table = inner
        table[key] = [value, *list_at(document, path)]

    def attempt(at: int, inserted: str) -> Iterator[tuple[str, int]]:
        changed = text[:at] + inserted + text[at:]
        if parses_as_changed(changed, text, change):
            yield changed, changed.count("\n", 0, changed.index(quoted, at)) + 1

    there = key in table_at(document, path[:-1])
    if there:
        comma = ", " if list_at(document, path) else ""
        for match in re.finditer(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*\[", text, re.MULTILINE):
            lines = text[match.end() :].lstrip(" \t").startswith(end)
            inserted = f"{end}    {quoted}," if lines else f"{quoted}{comma}"
            yield from attempt(match.end(), inserted)
        return
    header = re.escape(".".join(parents))
    for match in re.finditer(rf"^\[{header}\][ \t]*(?:#[^\n]*)?\r?\n", text, re.MULTILINE):
        yield from attempt(match.end(), f"{key} = [{quoted}]{end}")
    rest = "" if text.endswith("\n") else end  # of the last line
    table = f"[{'.'.join(parents)}]{end}{key} = [{quoted}]{end}"
    yield from attempt(len(text), f"{rest}{end}{table}")
