"""Rolls an environment back: after a failure, after a crash, or for `undo`.

Nothing is moved before everything was compared with the journal (`undo_check`). Only the journal is
needed, and a roll back that was interrupted is continued by the next run.
New files are moved to `trash/`, not removed: that takes milliseconds for gigabytes, and works for
libraries in use. Deleting the journal ends the roll back; `prune_history` then removes the rest.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH101, PTH106, PTH112, PTH116, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import Error
from ..utils.files import disk_error
from ..utils.signals import signals_held
from ..uv import guard as engine_guard
from .environment_files import copy_of, derived, emptied_folders, files_under
from .environment_lock import hold_environment_lock
from .history import (
    UNFINISHED,
    RecordedChange,
    change_folders,
    changed_since,
    delete_journal,
    prune_history,
    read_journal,
    recorded_changes,
)
from .journal import Install, Mark, Record, emptied_of, install_of, moves_of, state
from .journaled_change import append, move, move_folder
from .state_folder import (
    Site,
    absolute,
    check_state_folder,
    join,
    make_folder,
    remove_tree,
    size_of,
    sync_folder,
    unshare,
)
from .undo_check import Comparison, check_undoable


def pending_recovery(site: Site) -> bool:
    """Return whether a change must be rolled back before anything else.

    Raises those of `read_journal`.
    """
    return any(change.state in UNFINISHED for change in recorded_changes(site))


def recover_interrupted(
    site: Site,
    restored: Callable[[], None] = lambda: None,
    *,
    allow_changed: bool = False,
) -> tuple[RecordedChange, ...]:
    """Roll back every unfinished change, and return them; usually there is none.

    `restored` is called when everything is as before, where there was one; what had been written is
    removed after that, which takes seconds for gigabytes. Raises Error `environment-locked`, those
    of `read_journal`, and those of `roll_back`.
    """
    if not any(True for _ in change_folders(site)):
        return ()
    with hold_environment_lock(site):
        changes = tuple(change for change in recorded_changes(site) if change.state in UNFINISHED)
        for change in changes:
            roll_back(site, site.state / str(change.number), allow_changed=allow_changed)
        if changes:
            restored()
        prune_history(site)
    return changes


def undo_last(
    site: Site,
    installed: Iterable[tuple[str, str]],
    restored: Callable[[], None] = lambda: None,
    *,
    allow_changed: bool = False,
) -> int:
    """Roll back the last committed change; return the bytes that could not be removed.

    `installed` are the canonical names and versions of what is installed now. `restored` is called
    when everything is as before; the files of the change are removed after that, which takes
    seconds for gigabytes. Raises Error `nothing-to-undo`, `undo-changed` where something else
    changed what the change touched, unless `allow_changed`, and those of `recover_interrupted`.
    """
    with hold_environment_lock(site):
        last = next(
            (change for change in recorded_changes(site) if change.state == "committed"), None
        )
        if last is None or last.begin is None:
            raise Error("nothing-to-undo")
        names = changed_since(last.begin, installed)
        folder = site.state / str(last.number)
        roll_back(site, folder, allow_changed=allow_changed, names=names)
        restored()
        return prune_history(site) + remove_tree(site.stage)


def discard_stage(site: Site) -> int | None:
    """Remove what a run staged that ended before it changed anything; return the bytes.

    None where there is nothing; the locks of such a run go all the same. Raises as
    `hold_environment_lock`.
    """
    if not check_state_folder(site):
        return None
    with hold_environment_lock(site):
        if not site.stage.exists():
            return None
        size = size_of(site.stage)
        return size - remove_tree(site.stage)


def roll_back(
    site: Site, folder: Path, *, allow_changed: bool = False, names: Sequence[str] = ()
) -> None:
    """Move the files of the change in `folder` back; `prune_history` removes the rest.

    Raises Error `undo-changed` or `undo-impossible` as `check_undoable`; nothing is moved then. And
    `restore-failed` with the first file that could not be moved back; all others are, and the
    journal stays for another try. Where the journal is gone, which was there, `restore-moved` (with
    the environment) or `restore-lost`.
    """
    failures, journal = _Failures(), str(folder / "journal")
    with signals_held(), failures.noted(str(site.state)):
        engine_guard.wait_for_engine(site.engine_lock)
        records = read_journal(site, folder)
        if not records:  # there was a journal
            raise _gone(site)
        found = check_undoable(site, folder, records, names, allow_changed=allow_changed)
        with failures.noted(str(folder)):
            (folder / "reserve").unlink(missing_ok=True)
        _note_begin(folder, records)
        _restore_all(site, folder, records, found, failures)
        if failures.first is None:
            with failures.noted(journal):
                delete_journal(folder)
    if failures.first is not None:
        path, error = failures.first
        if path != journal and not os.path.lexists(journal):
            raise _gone(site) from error
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Error("restore-failed", path=path, reason=reason, count=failures.count) from error


def _gone(site: Site) -> Error:
    """Return what to raise where the journal is not there any more."""
    exists = os.path.isdir(site.purelib)
    return Error("restore-lost" if exists else "restore-moved", path=site.prefix)


def _note_begin(folder: Path, records: tuple[Record, ...]) -> None:
    """Record that the roll back begins: a committed change would not be taken for one otherwise.

    Raises Error `disk-full` or `disk-failed`.
    """
    how_far = state(records)
    if how_far == "undoing":
        return
    try:
        unshare(folder / "journal")
        append(folder, Mark(step="undo"))
    except OSError as error:
        if how_far == "committed":
            raise disk_error(error, folder) from error


class _Failures:
    """Counts failures, and keeps the first."""

    def __init__(self) -> None:
        self.first: tuple[str, Exception] | None = None
        self.count = 0

    @contextlib.contextmanager
    def noted(self, path: str) -> Iterator[None]:
        try:
            yield
        except Error:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are restored
            self.first = self.first or (path, error)
            self.count += 1


def _restore_all(
    site: Site,
    folder: Path,
    records: tuple[Record, ...],
    found: Comparison,
    failures: _Failures,
) -> None:
    backups = str(folder / "aside")
    moves = [(absolute(site, path), join(backups, name)) for path, name, _ in moves_of(records)]
    restored = {path for path, source in moves if not os.path.lexists(source)}
    trash = _Trash(folder / "trash", failures)
    install = install_of(records)
    if install is not None:
        _remove_created(site, install, found.stays | restored, trash)
    trash.take(sorted(found.theirs - restored))
    for path in sorted(emptied_folders(found.theirs, site), key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)
    for relative, mode, name in emptied_of(records):
        with failures.noted(relative):
            _restore_folder(site, absolute(site, relative), mode, join(backups, name))
    for path, source in moves:
        if os.path.lexists(source):
            with failures.noted(path):
                make_folder(os.path.dirname(path), site)
                if os.path.isdir(path):  # which no file can replace
                    trash.take([path])
                move(source, path)
    for path, source in moves:  # it may have gone meanwhile, with the whole environment
        if not os.path.lexists(source):
            with failures.noted(path):
                os.lstat(path)
    for name in {os.path.dirname(path) for path, _ in moves}:
        with failures.noted(name):
            sync_folder(name)


def _restore_folder(site: Site, path: str, mode: int, backup: str) -> None:
    """Restore a folder from `backup`, or make it."""
    make_folder(os.path.dirname(path), site)  # it went with what had come later
    if not os.path.lexists(path) and os.path.isdir(backup):
        move_folder(backup, path)
    make_folder(path, site)
    if os.stat(path).st_mode & 0o7777 != mode:
        os.chmod(path, mode)


class _Trash:
    """Takes what goes: renaming takes milliseconds for gigabytes."""

    def __init__(self, folder: Path, failures: _Failures) -> None:
        self._folder, self._failures, self._next = folder, failures, 0
        with failures.noted(str(folder)):
            folder.mkdir(exist_ok=True)
            self._next = len(os.listdir(folder))

    def take(self, paths: Iterable[str]) -> None:
        """Move what is at `paths` into the trash."""
        for path in paths:
            if os.path.lexists(path):
                with self._failures.noted(path):
                    move(path, str(self._folder / str(self._next)))
                    self._next += 1


def _remove_created(site: Site, install: Install, keep: set[str], trash: _Trash) -> None:
    """Move what has come to the trash, except what to `keep`."""
    created = [absolute(site, path) for path in install.created]
    whole = [absolute(site, path) for path in install.whole]
    folders = [absolute(site, path) for path in install.folders]
    folders += [inner for path in whole for inner, _, _ in os.walk(path)]
    around = emptied_folders(created, site, folders)
    files = {*created, *derived({*created}), *map(copy_of, created)}
    files |= {file for path in whole for file in files_under(path)}
    trash.take(sorted(files - keep))
    around |= {join(path, "__pycache__") for path in around}
    around -= {absolute(site, path) for path in install.standing}
    for path in sorted(around, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)
