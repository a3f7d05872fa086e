"""The journal of a change: every step, recorded before it is done, so that it can be undone.

A journal is a text of JSON lines. A line is on the disk before its step is done, so an incomplete
last line is ignored. Paths are relative to the site-packages folder of the environment, so that an
environment that was moved can still be rolled back. What each file was is recorded, too, so that a
roll back can see whether something else changed it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, cast

from ..errors import Error

VERSION = 1
JournalState = Literal["nothing", "open", "committed", "undoing"]
Fingerprint = tuple[str, int, int]
"""What a path was: `file` or `link`, bytes, and nanoseconds of its last change (`st_mtime_ns`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A change begins."""

    plan: str
    """A summary for people."""
    removed: tuple[str, ...]
    """Canonical names of the distributions to remove."""
    installed: tuple[tuple[str, str], ...]
    """Canonical name and version of every distribution to install."""
    present: tuple[str, ...]
    """The metadata folders in the environment."""
    when: str = ""
    """ISO 8601."""
    packages: tuple[tuple[str, str, str, str], ...] = ()
    """Name, version, index and SHA-256 of every wheel to install."""
    files: tuple[str, ...] = ()
    """The files of the user's project that change, too, outside of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFiles:
    """Files are about to be moved: from the first path to the second, a name in `aside/`."""

    moves: tuple[tuple[str, str], ...]
    seen: tuple[Fingerprint, ...]
    """What each of them is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFolders:
    """Folders that the moves left empty are about to be removed: path and mode, inner first."""

    folders: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    """Their names in `aside/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """Files are about to come."""

    created: tuple[str, ...]
    """Every one of them."""
    whole: tuple[str, ...]
    """Folders in which all files will be among those: the dist-info folders."""
    standing: tuple[str, ...]
    """The parents of `created` that exist already."""
    folders: tuple[str, ...] = ()
    """Folders that come without a file in them."""
    sizes: tuple[int, ...]
    """Bytes of each of `created`, -1 where unknown."""
    hashes: tuple[str, ...]
    """SHA-256 of each of `created` in hexadecimal, empty where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What comes is known; where copies have other times, once more when it is there."""

    seen: tuple[Fingerprint | None, ...]
    """What each of `Install.created` is, None where it was not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Everything is done (`commit`), or the roll back begins."""

    step: Literal["commit", "undo"]


Record = Begin | MovedFiles | RemovedFolders | Install | Written | Mark
_KINDS: dict[str, type[Begin | MovedFiles | RemovedFolders | Install | Written]] = {
    "begin": Begin,
    "aside": MovedFiles,
    "emptied": RemovedFolders,
    "install": Install,
    "installed": Written,
}
_NAMES: dict[type, str] = {kind: name for name, kind in _KINDS.items()}


def encode(record: Record) -> str:
    """Return the line of `record`, with a line break before it and after it.

    The first ends a line that an earlier failure may have left incomplete.
    """
    if isinstance(record, Mark):
        return f'\n{{"step": "{record.step}"}}\n'
    names = (field.name for field in fields(record))
    table = {"step": _NAMES[type(record)], **{name: getattr(record, name) for name in names}}
    if isinstance(record, Begin):
        table["version"] = VERSION
    return f"\n{json.dumps(table)}\n"


def decode(text: str) -> tuple[Record, ...]:
    """Return the records of the journal `text`.

    The last line, and the last one before the roll back, may be incomplete and is ignored then; so
    may the mark of a roll back be, as often as one was begun. Raises Error `journal-damaged` for
    any other line that cannot be parsed, and `journal-newer`.
    """
    records: list[Record] = []
    torn, undo = 0, encode(Mark(step="undo")).strip()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(line)
        if torn and not undo.startswith(line):
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


def moves_of(records: tuple[Record, ...]) -> tuple[tuple[str, str, Fingerprint], ...]:
    """Return path, name and fingerprint of all moves, the last first: the order of a roll back."""
    moves = [
        (path, name, seen)
        for record in records
        if isinstance(record, MovedFiles)
        for (path, name), seen in zip(record.moves, record.seen, strict=True)
    ]
    return tuple(reversed(moves))


def emptied_of(records: tuple[Record, ...]) -> tuple[tuple[str, int, str], ...]:
    """Return path, mode and name in `aside/` of the folders that were removed.

    The outer ones first: the order of a roll back.
    """
    folders = [
        (path, mode, name)
        for record in records
        if isinstance(record, RemovedFolders)
        for (path, mode), name in zip(record.folders, record.names, strict=True)
    ]
    return tuple(reversed(folders))


def install_of(records: tuple[Record, ...]) -> Install | None:
    """Return what was to come; None where it did not get that far."""
    return next((record for record in records if isinstance(record, Install)), None)


def written_of(records: tuple[Record, ...]) -> Written | None:
    """Return what has come, as it was recorded last."""
    return next((record for record in reversed(records) if isinstance(record, Written)), None)


def paths_of(records: tuple[Record, ...]) -> set[str]:
    """Return every path in the records: what a roll back may touch."""
    paths = {path for path, _, _ in moves_of(records)} | {
        path for path, _, _ in emptied_of(records)
    }
    install = install_of(records)
    if install is not None:
        paths.update(install.created, install.whole, install.standing, install.folders)
    return paths


def _record(line: str) -> Record | None:
    try:
        table: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(table, dict):
        return None
    return _from_table(cast("Mapping[str, object]", table))


def _from_table(table: Mapping[str, object]) -> Record | None:
    fields = dict(table)
    step = fields.pop("step", None)
    version = fields.pop("version", None)
    if isinstance(version, int) and version > VERSION:
        raise Error("journal-newer", version=version, known=VERSION)
    if not isinstance(step, str):
        return None
    if step in {"commit", "undo"}:
        return Mark(step=cast('Literal["commit", "undo"]', step)) if not fields else None
    if step == "begin":
        fields.setdefault("files", [])  # a change without any
    if step not in _KINDS or fields.keys() != _SHAPES[step].keys():
        return None
    if not all(fits(fields[name]) for name, fits in _SHAPES[step].items()):
        return None
    kind = _KINDS[step]
    record = kind(**{name: _frozen(value) for name, value in fields.items()})  # type: ignore[arg-type]
    return record if _is_parallel(record) else None


def _is_parallel(record: Record) -> bool:
    """Return whether the fields of `record` that go together have one length."""
    if isinstance(record, MovedFiles):
        return len(record.seen) == len(record.moves)
    if isinstance(record, RemovedFolders):
        return len(record.names) == len(record.folders)
    if isinstance(record, Install):
        return len(record.sizes) == len(record.hashes) == len(record.created)
    return True


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in cast("list[object]", value))
    return value


_Shape = Callable[[object], bool]


def _text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _name(value: object) -> bool:
    """Return whether `value` is a file name, without a folder."""
    return _text(value) and value not in {"", ".", ".."} and not set("/\\") & set(str(value))


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _row(*shapes: _Shape) -> _Shape:
    def fits(value: object) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(shapes)
            and all(shape(item) for shape, item in zip(shapes, value, strict=True))
        )

    return fits


def _rows(shape: _Shape, *, or_none: bool = False) -> _Shape:
    def fits(value: object) -> bool:
        if not isinstance(value, list):
            return False
        return all(shape(item) or (or_none and item is None) for item in value)

    return fits


_TEXTS = _rows(_text)
_FINGERPRINT = _row(_text, _number, _number)
_SHAPES: dict[str, dict[str, _Shape]] = {
    "begin": {
        "plan": _text,
        "removed": _TEXTS,
        "installed": _rows(_row(_text, _text)),
        "when": _text,
        "present": _TEXTS,
        "packages": _rows(_row(_text, _text, _text, _text)),
        "files": _TEXTS,
    },
    "aside": {"moves": _rows(_row(_text, _name)), "seen": _rows(_FINGERPRINT)},
    "emptied": {"folders": _rows(_row(_text, _number)), "names": _rows(_name)},
    "install": {
        "created": _TEXTS,
        "whole": _TEXTS,
        "standing": _TEXTS,
        "folders": _TEXTS,
        "sizes": _rows(_number),
        "hashes": _TEXTS,
    },
    "installed": {"seen": _rows(_FINGERPRINT, or_none=True)},
}
