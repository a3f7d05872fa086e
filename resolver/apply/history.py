"""What is kept of earlier changes of an environment, and when it may go.

A folder without a journal stands for nothing, a change that came to its end can be undone
until the next one does, and one that did not has to be put back first: that is `restore`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error
from ..facts.model import ChangeState
from .environment_lock import hold_environment_lock
from .journal import Begin, JournalState, Record, begin_of, decode, state
from .state_folder import Site, remove_tree, size_of, sync_folder

UNFINISHED: frozenset[JournalState] = frozenset({"open", "undoing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change that the state folder tells of."""

    number: int
    state: JournalState
    begin: Begin | None
    """None where nothing had begun when it ended."""
    size: int
    """Bytes that it keeps."""


def recorded_changes(site: Site) -> tuple[RecordedChange, ...]:
    """Return the changes that the state folder of this environment tells of, the newest first.

    Raises Error `journal-damaged` where a journal cannot be read.
    """
    found = []
    for number, folder in change_folders(site):
        records = read_journal(folder)
        found.append(
            RecordedChange(
                number=number,
                state=state(records),
                begin=begin_of(records) if records else None,
                size=size_of(folder),
            )
        )
    return tuple(found)


def history_summary(
    site: Site, installed: Iterable[tuple[str, str]]
) -> tuple[ChangeState | None, int]:
    """Return what the state folder holds, in a word, and the bytes that it takes.

    `installed` are canonical name and version of what is installed now. What cannot be read is
    taken for unfinished.
    """
    try:
        found = recorded_changes(site)
        size = size_of(site.state)
    except (Error, OSError):
        return "unfinished", 0
    if any(one.state in UNFINISHED for one in found):
        return "unfinished", size
    last = next((one.begin for one in found if one.state == "committed"), None)
    if last is not None and not changed_since(last, installed):
        return "kept", size
    return ("stale", size) if found or site.stage.exists() else (None, 0)


def changed_since(begin: Begin, installed: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of what is not installed as the change `begin` left it, sorted."""
    now = dict(installed)
    left = dict.fromkeys(begin.removed) | dict(begin.installed)
    return tuple(sorted(name for name, version in left.items() if now.get(name) != version))


def discard_undo_data(site: Site) -> int:
    """Remove everything that is kept, so that nothing can be undone; return the bytes that stay.

    Raises Error `unfinished-change` where something has to be put back first, `environment-locked`
    and `journal-damaged`.
    """
    if not site.state.exists():
        return 0
    with hold_environment_lock(site):
        if any(one.state in UNFINISHED for one in recorded_changes(site)):
            raise Error("unfinished-change", folder=site.prefix)
        return prune_history(site, everything=True) + remove_tree(site.stage)


def prune_history(site: Site, *, everything: bool = False) -> int:
    """Remove what nothing can be undone with, or `everything`; return the bytes that stay.

    What stays by rights is the newest change that came to its end, and those that did not. The
    caller holds the lock. What cannot be removed is no failure: the next run tries again. Raises
    Error `journal-damaged`.
    """
    left, keep = 0, not everything
    for _, folder in change_folders(site):
        how = state(read_journal(folder))
        if how in UNFINISHED:
            continue
        if how == "committed" and keep:
            keep = False
            continue
        try:
            delete_journal(folder)
        except OSError:
            left += size_of(folder)
        else:
            left += remove_tree(folder)
    return left


def delete_journal(folder: Path) -> None:
    """Remove the journal of a change, after which the rest stands for nothing. Raises OSError."""
    (folder / "journal").unlink(missing_ok=True)
    if folder.exists():
        sync_folder(folder)


def change_folders(site: Site) -> Iterator[tuple[int, Path]]:
    """Give number and folder of every change, the newest first."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        entries = [entry for entry in site.state.iterdir() if entry.name.isdigit()]
        yield from sorted(((int(entry.name), entry) for entry in entries), reverse=True)


def read_journal(folder: Path) -> tuple[Record, ...]:
    """Return what the journal in `folder` says; nothing where there is none.

    Raises Error `journal-damaged`.
    """
    try:
        return decode((folder / "journal").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
