"""The changes of an environment that can be undone, and when their files are removed.

A change folder without a journal is ignored. A committed change can be undone until the next one
commits. An unfinished change is rolled back before anything else. Changes are removed from the
oldest on: one that outlasts a later one would be undone beneath that.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import Error
from ..facts.model import ChangeState
from .environment_lock import hold_environment_lock
from .journal import Begin, JournalState, Record, begin_of, decode, paths_of, state
from .state_folder import (
    Site,
    absolute,
    check_state_folder,
    remove_tree,
    size_of,
    sync_folder,
)

_NUMBER = re.compile("[1-9][0-9]{0,8}")
"""The name of a change's folder, in ASCII."""
LAST = 999_999_999
PROJECT_FILES = (".toml", ".lock", ".txt", ".in", ".whl", "Pipfile")
"""How the names of the files of a project end that a change may write."""
UNFINISHED: frozenset[JournalState] = frozenset({"open", "undoing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change in the state folder."""

    number: int
    state: JournalState
    begin: Begin | None
    """None where the change was interrupted before its first record."""


def recorded_changes(site: Site) -> tuple[RecordedChange, ...]:
    """Return the changes in the state folder of this environment, the newest first.

    Raises those of `read_journal` and `check_state_folder`.
    """
    journals = [(number, read_journal(site, folder)) for number, folder in change_folders(site)]
    return tuple(
        RecordedChange(
            number=number, state=state(records), begin=begin_of(records) if records else None
        )
        for number, records in journals
    )


def history_summary(
    site: Site, installed: Iterable[tuple[str, str]]
) -> tuple[ChangeState | None, int]:
    """Return the state of the recorded changes, and the bytes of the state folder.

    `installed` are canonical names and versions of what is installed now. A journal that cannot be
    read counts as unfinished.
    """
    try:
        changes = recorded_changes(site)
        size = size_of(site.state)
    except (Error, OSError):
        return "unfinished", 0
    if any(change.state in UNFINISHED for change in changes):
        return "unfinished", size
    last = next((change.begin for change in changes if change.state == "committed"), None)
    if last is not None:
        return "changed" if changed_since(last, installed) else "kept", size
    return ("stale", size) if changes or site.stage.exists() else (None, 0)


def changed_since(begin: Begin, installed: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of distributions that changed after the change `begin`, sorted."""
    now = dict(installed)
    then = dict.fromkeys(begin.removed) | dict(begin.installed)
    return tuple(sorted(name for name, version in then.items() if now.get(name) != version))


def discard_undo_data(site: Site, *, allow_changed: bool = False) -> int:
    """Remove all changes, so that nothing can be undone; return the bytes that stay.

    Raises Error `unfinished-change` where one should be rolled back first, unless `allow_changed`,
    `environment-locked`, and those of `read_journal`.
    """
    if not check_state_folder(site):
        return 0
    with hold_environment_lock(site):
        unfinished = [change for change in recorded_changes(site) if change.state in UNFINISHED]
        if unfinished and not allow_changed:
            raise Error("unfinished-change", folder=site.prefix)
        everything = [folder for _, folder in change_folders(site)]
        return _remove_changes(everything) + remove_tree(site.stage)


def prune_history(site: Site) -> int:
    """Remove the changes that cannot be undone; return the bytes that stay.

    The newest committed change is kept, and unfinished ones always. The caller holds the lock. What
    cannot be removed is tried again by the next run. Raises those of `read_journal`.
    """
    keep, gone = True, []
    for _, folder in change_folders(site):
        progress = state(read_journal(site, folder))
        if progress in UNFINISHED or (progress == "committed" and keep):
            keep = keep and progress != "committed"
        else:
            gone.append(folder)
    return _remove_changes(gone)


def _remove_changes(newest_first: Sequence[Path]) -> int:
    """Remove changes, the oldest first, up to one that cannot be; return the bytes that stay."""
    remaining, left = 0, list(newest_first)
    while left:
        try:
            delete_journal(left[-1])
        except OSError:
            break
        remaining += remove_tree(left.pop())
    return remaining + sum(map(size_of, left))


def delete_journal(folder: Path) -> None:
    """Remove the journal of a change; the rest of the folder is ignored then. Raises OSError."""
    (folder / "journal").unlink(missing_ok=True)
    if folder.exists():
        sync_folder(folder)


def change_folders(site: Site) -> Iterator[tuple[int, Path]]:
    """Yield number and folder of every change, the newest first. Raises Error `state-refused`."""
    if not check_state_folder(site):
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        entries = [entry for entry in site.state.iterdir() if _NUMBER.fullmatch(entry.name)]
        yield from sorted(((int(entry.name), entry) for entry in entries), reverse=True)


def read_journal(site: Site, folder: Path) -> tuple[Record, ...]:
    """Return the journal in `folder`, empty without one.

    Raises Error `journal-damaged` where it cannot be read, `journal-newer` where another version of
    this program wrote it, and `journal-outside` where it names a path outside the environment.
    """
    try:
        data = (folder / "journal").read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Error("journal-damaged", line=0) from error
    return _records(site, folder, data)


@lru_cache(maxsize=8)  # a run reads each several times, and has thousands of paths
def _records(site: Site, folder: Path, data: bytes) -> tuple[Record, ...]:
    """Return the records of a journal that may be followed. Raises as `read_journal`."""
    try:
        records = decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Error("journal-damaged", line=data[: error.start].count(b"\n") + 1) from error
    outside = _of_project(site, records)
    for path in paths_of(records):
        plain, where = os.path.normpath(path) == path, absolute(site, path)
        if not (plain and (where in outside or site.may_hold(where))):
            raise Error("journal-outside", path=path, folder=folder)
    return records


def _of_project(site: Site, records: tuple[Record, ...]) -> set[str]:
    """Return the absolute paths outside of the environment that a journal may name.

    They are the files of the user's project that its first record names, of the kinds that a
    project has, and the directories of them.
    """
    named = (absolute(site, path) for path in (begin_of(records).files if records else ()))
    files = {path for path in named if path.endswith(PROJECT_FILES)}
    return files | {os.path.dirname(path) for path in files}  # noqa: PTH120 - strings
