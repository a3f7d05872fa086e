"""The journal of a change: what is about to be done, so that it can be undone.

A journal is a text of JSON lines. A line is on the disk before what it says is done, so a
line that was torn off by a crash stands for nothing. Paths are relative to the site-packages
folder of the environment, so that an environment that was moved can still be put back.
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
    """What is to be done, in short, for people."""
    removed: tuple[str, ...]
    """Canonical names of the distributions that leave."""
    installed: tuple[tuple[str, str], ...]
    """Canonical name and version of every distribution that comes."""
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
    """Folders that will be its own altogether: the dist-info folders."""
    standing: tuple[str, ...]
    """The folders among the parents of `created` that are there already."""
    temporary: tuple[str, ...]
    """Files there now that look like an engine's temporary ones, and are not."""
    folders: tuple[str, ...] = ()
    """Folders that it may make though no file comes into them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something is done: the engine (`installed`), all of it (`commit`), or the way back began."""

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

    The one before ends a line that an earlier failure may have torn.
    """
    if isinstance(record, Mark):
        return f'\n{{"step": "{record.step}"}}\n'
    table = {"step": _NAMES[type(record)], **asdict(record)}
    if isinstance(record, Begin):
        table["version"] = VERSION
    return f"\n{json.dumps(table)}\n"


def decode(text: str) -> tuple[Record, ...]:
    """Return the records of the journal `text`.

    A line that cannot be read is passed over where it is the last before the way back, or the last
    of all: it was torn while it was written. Anywhere else it raises Error `journal-damaged`.
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
        return ()  # not even the beginning could be written
    if records and not isinstance(records[0], Begin):
        raise Error("journal-damaged", line=1)
    return tuple(records)


def state(records: tuple[Record, ...]) -> JournalState:
    """Return how far the change of these records has come."""
    if not records:
        return "nothing"
    if Mark(step="undo") in records:
        return "undoing"
    return "committed" if Mark(step="commit") in records else "open"


def begin_of(records: tuple[Record, ...]) -> Begin:
    """Return the first record; there must be one."""
    return cast("Begin", records[0])


def moves_of(records: tuple[Record, ...]) -> tuple[tuple[str, str], ...]:
    """Return all moves, the last one first: the order of the way back."""
    moves = [move for record in records if isinstance(record, MovedFiles) for move in record.moves]
    return tuple(reversed(moves))


def emptied_of(records: tuple[Record, ...]) -> tuple[tuple[str, int], ...]:
    """Return the folders that were removed, the outer ones first: the order of the way back."""
    folders = [
        row for record in records if isinstance(record, RemovedFolders) for row in record.folders
    ]
    return tuple(reversed(folders))


def install_of(records: tuple[Record, ...]) -> Install | None:
    """Return what the engine was going to write, or None where it was never started."""
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
