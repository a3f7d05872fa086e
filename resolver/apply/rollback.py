"""Rolls an environment back: after a failure, after a crash, or for `--undo`.

Only the journal is needed, and a roll back that was interrupted is continued by the next run.
New files are moved to `trash/`, not removed: that takes milliseconds for gigabytes, and works for
libraries in use. Deleting the journal ends the roll back; `prune_history` then removes the rest.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH101, PTH103, PTH106, PTH116, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..engine import guard as engine_guard
from ..errors import Error
from ..index.download import disk_error
from ..utils.signals import signals_ignored
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
from .journal import Install, Mark, emptied_of, install_of, moves_of
from .removal import bytecode, emptied_folders, files_under
from .set_aside import append, engine_temporaries, move
from .state_folder import Site, join, sync_folder


def recover_interrupted(site: Site) -> tuple[RecordedChange, ...]:
    """Roll back every unfinished change, and return them; usually there is none.

    Raises Error `environment-locked`, `journal-damaged` or `restore-failed`.
    """
    if not any(True for _ in change_folders(site)):
        return ()
    with hold_environment_lock(site):
        changes = tuple(row for row in recorded_changes(site) if row.state in UNFINISHED)
        for change in changes:
            roll_back(site, site.state / str(change.number))
        prune_history(site)
    return changes


def undo_last(
    site: Site,
    installed: Iterable[tuple[str, str]],
    restored: Callable[[], None] = lambda: None,
) -> int:
    """Roll back the last committed change; return the bytes that could not be removed.

    `installed` are the canonical names and versions of what is installed now. `restored` is called
    when everything is as before; the files of the change are removed after that, which takes
    seconds for gigabytes. Raises Error `nothing-to-undo`, `undo-changed` where the distributions of
    the change were changed since, `disk-full` or `disk-failed` before anything is moved, and those
    of `recover_interrupted`.
    """
    with hold_environment_lock(site):
        last = next((row for row in recorded_changes(site) if row.state == "committed"), None)
        if last is None or last.begin is None:
            raise Error("nothing-to-undo")
        names = changed_since(last.begin, installed)
        if names:
            raise Error("undo-changed", names=", ".join(names))
        folder = site.state / str(last.number)
        try:
            append(folder, Mark(step="undo"))
        except OSError as error:
            raise disk_error(error, folder) from error
        roll_back(site, folder)
        restored()
        return prune_history(site)


def roll_back(site: Site, folder: Path) -> None:
    """Move the files of the change in `folder` back; `prune_history` removes the rest.

    Raises Error `restore-failed` with the first file that could not be moved back; all others are,
    and the journal stays for another try.
    """
    failures = _Failures()
    with failures.noted(str(site.state)):
        engine_guard.wait_for_engine(site.state / "engine.lock")
    if failures.first is None:
        with signals_ignored():
            _put_all_back(site, folder, failures)
    if failures.first is not None:
        path, error = failures.first
        reason = error.strerror or str(error)
        raise Error("restore-failed", path=path, reason=reason, count=failures.count) from error


class _Failures:
    """Counts failures, and keeps the first."""

    def __init__(self) -> None:
        self.first: tuple[str, OSError] | None = None
        self.count = 0

    @contextlib.contextmanager
    def noted(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.first = self.first or (path, error)
            self.count += 1


def _put_all_back(site: Site, folder: Path, failures: _Failures) -> None:
    records = read_journal(folder)
    aside = str(folder / "aside")
    moves = [(_absolute(site, path), join(aside, name)) for path, name in moves_of(records)]
    moved_back = {path for path, source in moves if not os.path.lexists(source)}
    install = install_of(records)
    if install is not None:
        _remove_created(site, folder, install, moved_back, failures)
    for relative, mode in emptied_of(records):
        with failures.noted(relative):
            path = _absolute(site, relative)
            os.makedirs(path, exist_ok=True)
            if os.stat(path).st_mode & 0o7777 != mode:
                os.chmod(path, mode)
    for path, source in moves:
        if os.path.lexists(source):
            with failures.noted(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                move(source, path)
    for name in {os.path.dirname(path) for path, _ in moves}:
        with failures.noted(name):
            sync_folder(name)
    if failures.first is None:
        with failures.noted(str(folder)):
            delete_journal(folder)


def _remove_created(
    site: Site, folder: Path, install: Install, moved_back: set[str], failures: _Failures
) -> None:
    """Move what the engine wrote, complete or not, to the trash, except what is `moved_back`."""
    trash = str(folder / "trash")
    os.makedirs(trash, exist_ok=True)
    used = len(os.listdir(trash))
    created = [_absolute(site, path) for path in install.created]
    whole = [_absolute(site, path) for path in install.whole]
    folders = [_absolute(site, path) for path in install.folders]
    folders += [inner for path in whole for inner, _, _ in os.walk(path)]
    around = emptied_folders(created, site, folders)
    files = {*created, *bytecode(created)}
    files |= engine_temporaries(site, around) - {
        _absolute(site, path) for path in install.temporary
    }
    files |= {file for path in whole for file in files_under(path)}
    for number, path in enumerate(sorted(files - moved_back), start=used):
        if os.path.lexists(path):
            with failures.noted(path):
                move(path, join(trash, str(number)))
    around |= {join(path, "__pycache__") for path in around}
    around -= {_absolute(site, path) for path in install.standing}
    for path in sorted(around, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _absolute(site: Site, path: str) -> str:
    return os.path.normpath(join(site.purelib, path))
