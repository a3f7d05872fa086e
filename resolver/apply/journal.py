"""The journal of a change: every step, recorded before it is done, so that it can be undone.

A journal is a text of JSON lines. A line is on the disk before its step is done, so an incomplete
last line is ignored. Paths are relative to the site-packages folder of the environment, so that an
environment that was moved can still be rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, cast

from ..errors import Error

VERSION = 1
JournalState = Literal["nothing", "open", "committed", "undoing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A change begins."""

    plan: str
    """A summary for people."""
    removed: tuple[str, ...]
    """Canonical names of the distributions to remove."""
    installed: tuple[tuple[str, str], ...]
    """Canonical name and version of every distribution to install."""
    when: str = ""
    """ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFiles:
    """Files are about to be moved: from the first path to the second, a name in `aside/`."""

    moves: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFolders:
    """Folders that the moves left empty are about to be removed: path and mode, inner first."""

    folders: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """The engine is about to run."""

    created: tuple[str, ...]
    """Every file that it will write."""
    whole: tuple[str, ...]
    """Folders in which all files will be its own: the dist-info folders."""
    standing: tuple[str, ...]
    """The parents of `created` that exist already."""
    temporary: tuple[str, ...]
    """Existing files with names like an engine's temporary ones."""
    folders: tuple[str, ...] = ()
    """Folders that it may create without a file in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A step is done: the engine (`installed`), everything (`commit`); or the roll back begins."""

    step: Literal["installed", "commit", "undo"]


Record = Begin | MovedFiles | RemovedFolders | Install | Mark
_KINDS: dict[str, type[Begin | MovedFiles | RemovedFolders | Install]] = {
    "begin": Begin,
    "aside": MovedFiles,
    "emptied": RemovedFolders,
    "install": Install,
}
_NAMES: dict[type, str] = {kind: name for name, kind in _KINDS.items()}


def encode(record: Record) -> str:
    """Return the line of `record`, with a line break before it and after it.

    The first ends a line that an earlier failure may have left incomplete.
    """
    if isinstance(record, Mark):
        return f'\n{{"step": "{record.step}"}}\n'
    table = {"step": _NAMES[type(record)], **asdict(record)}
    if isinstance(record, Begin):
        table["version"] = VERSION
    return f"\n{json.dumps(table)}\n"


def decode(text: str) -> tuple[Record, ...]:
    """Return the records of the journal `text`.

    The last line, and the last one before the roll back, may be incomplete and is ignored then.
    Raises Error `journal-damaged` for any other line that cannot be parsed.
    """
    records: list[Record] = []
    torn = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(line)
        if torn and record != Mark(step="undo"):
            raise Error("journal-damaged", line=torn)
        if record is None:
            torn = number
        else:
            torn = 0
            records.append(record)
    if records and records[0] == Mark(step="undo"):
        return ()  # nothing was recorded before the roll back
    if records and not isinstance(records[0], Begin):
        raise Error("journal-damaged", line=1)
    return tuple(records)


def state(records: tuple[Record, ...]) -> JournalState:
    """Return the state of the change of these records."""
    if not records:
        return "nothing"
    if Mark(step="undo") in records:
        return "undoing"
    return "committed" if Mark(step="commit") in records else "open"


def begin_of(records: tuple[Record, ...]) -> Begin:
    """Return the first record; there must be one."""
    return cast("Begin", records[0])


def moves_of(records: tuple[Record, ...]) -> tuple[tuple[str, str], ...]:
    """Return all moves, the last one first: the order of a roll back."""
    moves = [move for record in records if isinstance(record, MovedFiles) for move in record.moves]
    return tuple(reversed(moves))


def emptied_of(records: tuple[Record, ...]) -> tuple[tuple[str, int], ...]:
    """Return the folders that were removed, the outer ones first: the order of a roll back."""
    folders = [
        row for record in records if isinstance(record, RemovedFolders) for row in record.folders
    ]
    return tuple(reversed(folders))


def install_of(records: tuple[Record, ...]) -> Install | None:
    """Return what the engine was to write; None where it was not started."""
    return next((record for record in records if isinstance(record, Install)), None)


def _record(line: str) -> Record | None:
    try:
        table: object = json.loads(line)
        return _from_table(cast("Mapping[str, object]", table))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _from_table(table: Mapping[str, object]) -> Record:
    fields = dict(table)
    step = str(fields.pop("step"))
    if step in {"installed", "commit", "undo"}:
        return Mark(step=cast('Literal["installed", "commit", "undo"]', step))
    fields.pop("version", None)
    values = {name: _frozen(value) for name, value in fields.items()}
    return _KINDS[step](**values)  # type: ignore[arg-type]


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in cast("list[object]", value))
    return value
