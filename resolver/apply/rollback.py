"""Put an environment back: after a failure, after a crash, or because the user wants it.

Works from the journal alone and can be repeated: whatever ends it half-way, the next run goes on.
What came is moved away rather than removed: that takes milliseconds for gigabytes, and a library in
use allows it everywhere. When its journal is gone the environment is whole; `prune_history` removes
what was moved away, now or at any later run.
"""

# Paths are text here: there are tens of thousands of them.
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
from .change import append, engine_temporaries, innermost, move
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
from .state_folder import Site, join, sync_folder


def recover_interrupted(site: Site) -> tuple[RecordedChange, ...]:
    """Take back every change that never came to its end, and return them; none is the usual case.

    Raises Error `environment-locked`, `journal-damaged` or `restore-failed`.
    """
    if not any(True for _ in change_folders(site)):
        return ()
    with hold_environment_lock(site):
        found = tuple(one for one in recorded_changes(site) if one.state in UNFINISHED)
        for one in found:
            roll_back(site, site.state / str(one.number))
        prune_history(site)
    return found


def undo_last(
    site: Site,
    installed: Iterable[tuple[str, str]],
    restored: Callable[[], None] = lambda: None,
) -> int:
    """Take back the last change that came to its end; return the bytes that could not be removed.

    `installed` are canonical name and version of what is installed now. `restored` is called when
    everything is as it was; what came with the change is removed from the disk after that, which
    takes seconds for gigabytes. Raises Error `nothing-to-undo`, `undo-changed` where the
    distributions of the change are not as it left them, `disk-full` or `disk-failed` before
    anything is moved, and those of `recover_interrupted`.
    """
    with hold_environment_lock(site):
        done = next((one for one in recorded_changes(site) if one.state == "committed"), None)
        if done is None or done.begin is None:
            raise Error("nothing-to-undo")
        other = changed_since(done.begin, installed)
        if other:
            raise Error("undo-changed", names=", ".join(other))
        folder = site.state / str(done.number)
        try:
            append(folder, Mark(step="undo"))
        except OSError as error:
            raise disk_error(error, folder) from error
        roll_back(site, folder)
        restored()
        return prune_history(site)


def roll_back(site: Site, folder: Path) -> None:
    """Put back what the change in `folder` moved; `prune_history` removes the rest.

    Raises Error `restore-failed` with the first file that could not be put back; everything else
    is, and the journal stays for another try.
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
    """What could not be put back; the rest goes on."""

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
    moves = [(_absolute(site, path), join(aside, kept)) for path, kept in moves_of(records)]
    back = {path for path, kept in moves if not os.path.lexists(kept)}
    install = install_of(records)
    if install is not None:
        _remove_created(site, folder, install, back, failures)
    for relative, mode in emptied_of(records):
        with failures.noted(relative):
            _make_folder(_absolute(site, relative), mode)
    for path, kept in moves:
        if os.path.lexists(kept):
            with failures.noted(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                move(kept, path)
    for name in {os.path.dirname(path) for path, _ in moves}:
        with failures.noted(name):
            sync_folder(name)
    if failures.first is None:
        with failures.noted(str(folder)):
            delete_journal(folder)


def _remove_created(
    site: Site, folder: Path, install: Install, back: set[str], failures: _Failures
) -> None:
    """Move away what the engine wrote, whole or half, except what has been put `back` already."""
    trash = str(folder / "trash")
    os.makedirs(trash, exist_ok=True)
    used = len(os.listdir(trash))
    created = [_absolute(site, path) for path in install.created]
    whole = [_absolute(site, path) for path in install.whole]
    folders = [_absolute(site, path) for path in install.folders]
    folders += [folder for path in whole for folder, _, _ in os.walk(path)]
    around = emptied_folders([*created, *innermost(folders)], site)
    known = {_absolute(site, path) for path in install.temporary}
    gone = {*created, *bytecode(created), *(engine_temporaries(site, around) - known)}
    gone |= {path for path in whole for path in files_under(path)}
    for number, path in enumerate(sorted(gone - back), start=used):
        if os.path.lexists(path):
            with failures.noted(path):
                move(path, join(trash, str(number)))
    standing = {_absolute(site, path) for path in install.standing}
    caches = {join(path, "__pycache__") for path in around}
    for path in sorted({*around, *caches} - standing, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _make_folder(path: str, mode: int) -> None:
    os.makedirs(path, exist_ok=True)
    if os.stat(path).st_mode & 0o7777 != mode:
        os.chmod(path, mode)


def _absolute(site: Site, path: str) -> str:
    return os.path.normpath(join(site.purelib, path))
