"""Rewrite pyproject.toml: the requirements of onnxruntime become the right pin, all else stays.

A string is replaced in the text. The edit is used only if the document then parses to what it was,
apart from that one requirement.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..utils.toml import tomllib
from ..versions import numbers, requirement
from .rewrite import BOTH, Done, Edit, RewrittenText, pin

Document = dict[str, object]
Path = tuple[str | int, ...]
_LISTS = (("project", "dependencies"), ("tool", "uv", "dev-dependencies"))
_LISTS_BY_NAME = (
    ("project", "optional-dependencies"),
    ("dependency-groups",),
    ("tool", "pdm", "dev-dependencies"),
)
_TOKEN = re.compile(
    r"""\#[^\n]*|\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}|(?P<string>"(?:\\.|[^"\\\n])*"|'[^'\n]*')""",
    re.DOTALL,
)
_POETRY = re.compile(
    r"""^(?P<lead>[ \t]*)(?P<quote>["']?)(?P<key>[A-Za-z0-9._-]+)(?P=quote)(?P<equals>[ \t]*=[ \t]*)
        (?P<table>\{[^\n]*?\bversion[ \t]*=[ \t]*)?(?P<version>"[^"\n]*"|'[^'\n]*')""",
    re.MULTILINE | re.VERBOSE,
)
_CARET = re.compile(r"[\^~](?=\s*\d)")
"""Of Poetry's notation: `^3.9`, `~3.9`."""


def dependencies(text: str) -> tuple[str, ...]:
    """Return the requirements of the project itself. Raises tomllib.TOMLDecodeError."""
    rows = list_at(tomllib.loads(text), ("project", "dependencies"))
    return tuple(row for row in rows if isinstance(row, str))


def names_a_build(text: str) -> bool:
    """Return whether a requirement that is read here names a build of onnxruntime, in force or not.

    Raises tomllib.TOMLDecodeError.
    """
    document = tomllib.loads(text)
    named = (requirement(value) for _, value in _requirements(document))
    return any(_poetry(document)) or any(
        row is not None and canonicalize_name(row.name) in BOTH for row in named
    )


def since(text: str, python: str) -> str | None:
    """Return `python` (`3.11`) where the project allows an older one, too: then pins need a marker.

    uv, Poetry and PDM lock for all that it allows, and one that names none allows all. Raises
    tomllib.TOMLDecodeError.
    """
    document = tomllib.loads(text)
    wanted = table_at(document, ("project",)).get("requires-python")
    wanted = wanted or table_at(document, ("tool", "poetry", "dependencies")).get("python")
    older = [f"3.{minor}.99" for minor in range(numbers(python)[1])]
    for part in str(wanted or "").split("|"):
        with contextlib.suppress(InvalidSpecifier):  # one release alone, in Poetry's notation
            allowed = SpecifierSet(_CARET.sub(">=", part))
            if any(map(allowed.contains, older)):
                return python
    return None


def with_python(text: str, python: str | None) -> str:
    """Return the requirement `text` for `python` and newer ones alone; None: as it is."""
    floor = f"python_version >= '{python}'"
    head, semicolon, marker = (part.strip() for part in text.partition(";"))
    if python is None or floor in marker:
        return text
    return f"{head}; ({marker}) and {floor}" if semicolon else f"{text}; {floor}"


def rewrite_pyproject(
    text: str, version: str, markers: Mapping[str, str], python: str | None = None
) -> RewrittenText:
    """Return pyproject.toml with every requirement of onnxruntime that applies pinned to `version`.

    `python`: the oldest that the pins are for, where the project allows an older one.

    Where one names the GPU build, those of the CPU build stay: a project may have an extra for
    each. Raises tomllib.TOMLDecodeError.
    """
    edits: list[Edit] = []
    document = tomllib.loads(text)
    ours = [
        (path, name, value)
        for path, value in _requirements(document)
        if (name := _build(value, markers)) is not None
    ]
    ours_of_poetry = [(path, canonicalize_name(str(path[-1]))) for path in _poetry(document)]
    has_gpu = GPU_BUILD in {name for _, name, _ in ours} | {name for _, name in ours_of_poetry}
    for path, name, value in ours:
        new = pin(value, version)
        new = new and with_python(new, python)
        if has_gpu and name == CPU_BUILD:
            edits.append(_unchanged(text, value, "other", path))
        elif new is None:
            edits.append(_unchanged(text, value, "address", path))
        elif new != value:
            replaced = _replace_string(text, path, value, new)
            if replaced is None:
                edits.append(_unchanged(text, value, "odd", path))
            else:
                text, line = replaced
                edits.append(Edit(line=line, before=value, after=new, done="replaced"))
    extras = set(_names_in_extras(document))
    for path, name in ours_of_poetry:
        if has_gpu and name == CPU_BUILD:
            edits.append(_unchanged(text, str(path[-1]), "other"))
        elif name == CPU_BUILD and name in extras:  # the extra would lose its dependency
            edits.append(_unchanged(text, str(path[-1]), "odd"))
        else:
            text, edits_here = _replace_poetry(text, path, version, python)
            edits += edits_here
    return RewrittenText(text=text, edits=tuple(sorted(edits, key=lambda edit: edit.line)))


def _build(value: str, markers: Mapping[str, str]) -> str | None:
    """Return which build of onnxruntime a requirement names, where it applies."""
    wanted = requirement(value)
    if wanted is None or not is_in_force(wanted, markers, ""):
        return None
    name = canonicalize_name(wanted.name)
    return name if name in BOTH else None


def table_at(document: Document, path: Path) -> Document:
    """Return the table at `path`; empty where there is none."""
    for key in path:
        value = document.get(str(key))
        document = cast("Document", value) if isinstance(value, dict) else {}
    return document


def list_at(document: Document, path: Path) -> list[object]:
    """Return the list at `path`; empty where there is none."""
    rows = table_at(document, path[:-1]).get(str(path[-1]))
    return cast("list[object]", rows) if isinstance(rows, list) else []


def _requirements(document: Document) -> Iterator[tuple[Path, str]]:
    """Yield every requirement of the project, its extras and groups, with its path."""
    paths: list[Path] = list(_LISTS)
    for parent in _LISTS_BY_NAME:
        paths += [(*parent, name) for name in table_at(document, parent)]
    for path in paths:
        for at, value in enumerate(list_at(document, path)):
            if isinstance(value, str):
                yield (*path, at), value


def _poetry(document: Document) -> Iterator[Path]:
    """Yield the paths of the builds of onnxruntime in the tables of poetry."""
    poetry = ("tool", "poetry")
    parents: list[Path] = [(*poetry, "dependencies"), (*poetry, "dev-dependencies")]
    parents += [
        (*poetry, "group", name, "dependencies") for name in table_at(document, (*poetry, "group"))
    ]
    for parent in parents:
        yield from (
            (*parent, name)
            for name in table_at(document, parent)
            if canonicalize_name(name) in BOTH
        )


def _names_in_extras(document: Document) -> Iterator[str]:
    """Yield which of poetry's dependencies its extras name."""
    parent = ("tool", "poetry", "extras")
    for extra in table_at(document, parent):
        yield from (canonicalize_name(str(name)) for name in list_at(document, (*parent, extra)))


def _replace_string(text: str, path: Path, old: str, new: str) -> tuple[str, int] | None:
    """Return the text with `new` for the string at `path`, and its line; None where not sure."""

    def change(document: Document) -> None:
        list_at(document, path[:-1])[int(path[-1])] = new

    for token in _TOKEN.finditer(text):
        raw = token["string"]
        if raw is None or tomllib.loads(f"v = {raw}")["v"] != old:
            continue
        alike = raw[1:-1] == old and raw[0] not in new
        quoted = raw.replace(old, new) if alike else json.dumps(new)
        changed = text[: token.start()] + quoted + text[token.end() :]
        if parses_as_changed(changed, text, change):
            return changed, text.count("\n", 0, token.start()) + 1
    return None


def _replace_poetry(
    text: str, path: Path, version: str, python: str | None
) -> tuple[str, list[Edit]]:
    """Replace key and version of a dependency in poetry's notation."""
    key = str(path[-1])

    def change(document: Document) -> None:
        table = table_at(document, path[:-1])
        value = table.pop(key)
        more = cast("Document", value) if isinstance(value, dict) else None
        if python is not None:
            more = {"python": f">={python}", **(more or {})}
        table[GPU_BUILD] = version if more is None else {**more, "version": version}

    for row in _POETRY.finditer(text):
        if row["key"] != key:
            continue
        start = row["lead"] + GPU_BUILD + row["equals"] + (row["table"] or "")
        plain = f'{start}"{version}"'
        limited = f'"{version}", python = ">={python}"'
        limited = start + (limited if row["table"] else f"{{ version = {limited} }}")
        for written in (plain, limited):
            changed = text[: row.start()] + written + text[row.end() :]
            if not parses_as_changed(changed, text, change):
                continue
            line = text.count("\n", 0, row.start()) + 1
            before, after = (whole.split("\n")[line - 1].strip() for whole in (text, changed))
            edit = Edit(line=line, before=before, after=after, done="replaced")
            return changed, [edit] if after != before else []
    return text, [_unchanged(text, key, "odd")]


def parses_as_changed(changed: str, text: str, change: Callable[[Document], None]) -> bool:
    """Return whether `changed` parses to what `text` does after `change`."""
    expected = tomllib.loads(text)
    change(expected)
    try:
        return tomllib.loads(changed) == expected
    except tomllib.TOMLDecodeError:
        return False


def _unchanged(text: str, value: str, done: Done, path: Path | None = None) -> Edit:
    """Return that `value` stays: the string at `path`, or else a key."""
    replaced = _replace_string(text, path, value, f"{value} ") if path else None
    key = rf"^[ \t]*(?:\[[^\]\n]*\.)?[\"']?{re.escape(value)}[\"']?[ \t]*[=.\]]"
    match = re.search(key, text, re.MULTILINE)
    line = replaced[1] if replaced else text.count("\n", 0, match.start() if match else 0) + 1
    return Edit(line=line, before=value, after=None, done=done)
