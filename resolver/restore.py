"""Put an environment back: after a failure, after a crash, or because the user wants it.

Shell. Works from the journal alone and can be repeated: whatever ends it half-way, the next run
goes on. What came is moved away rather than removed, which a library in use allows everywhere.
"""

# Paths are text here: there are tens of thousands of them.
# ruff: noqa: PTH101, PTH103, PTH106, PTH116, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import engine_guard
from .download import disk_error
from .errors import Error
from .journal import (
    Begin,
    Install,
    Mark,
    Record,
    State,
    begin_of,
    decode,
    emptied_of,
    install_of,
    moves_of,
    state,
)
from .leaving import bytecode, files_under, parents
from .state import Site, exclusive, join, remove_tree, size_of, sync_folder
from .transaction import append, move, temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A change that the state folder tells of."""

    number: int
    state: State
    begin: Begin | None
    """None where nothing had begun when it ended."""
    size: int
    """Bytes that it keeps."""


def changes(site: Site) -> tuple[Found, ...]:
    """Return the changes that the state folder of this environment tells of, the newest first.

    Raises Error `journal-damaged` where a journal cannot be read.
    """
    found = []
    for number, folder in _folders(site):
        records = _read(folder)
        found.append(
            Found(
                number=number,
                state=state(records),
                begin=begin_of(records) if records else None,
                size=size_of(folder),
            )
        )
    return tuple(found)


def recover(site: Site) -> tuple[Found, ...]:
    """Take back every change that never came to its end, and return them; none is the usual case.

    Raises Error `environment-locked`, `journal-damaged` or `restore-failed`.
    """
    if not any(True for _ in _folders(site)):
        return ()
    with exclusive(site):
        found = [one for one in changes(site) if one.state in {"open", "undoing", "nothing"}]
        for one in found:
            restore(site, site.state / str(one.number))
    return tuple(one for one in found if one.state != "nothing")


def undo(site: Site, installed: Iterable[tuple[str, str]]) -> Begin:
    """Take back the last change that came to its end, and return what it was.

    `installed` are canonical name and version of what is installed now. Raises Error
    `nothing-to-undo`, `undo-changed` where the distributions of the change are not as it left
    them, `disk-full` or `disk-failed` before anything is moved, and those of `recover`.
    """
    with exclusive(site):
        done = next((one for one in changes(site) if one.state == "committed"), None)
        if done is None or done.begin is None:
            raise Error("nothing-to-undo")
        now = dict(installed)
        left = dict.fromkeys(done.begin.removed) | dict(done.begin.installed)
        other = sorted(name for name, version in left.items() if now.get(name) != version)
        if other:
            raise Error("undo-changed", names=", ".join(other))
        folder = site.state / str(done.number)
        try:
            append(folder, Mark(step="undo"))
        except OSError as error:
            raise disk_error(error, folder) from error
        restore(site, folder)
        return done.begin


def forget(site: Site) -> int:
    """Remove everything that is kept, so that nothing can be undone; return the bytes that stay.

    Raises Error `unfinished-change` where something has to be put back first, and those of
    `recover`.
    """
    if not site.state.exists():
        return 0
    with exclusive(site):
        if any(one.state in {"open", "undoing"} for one in changes(site)):
            raise Error("unfinished-change", folder=site.prefix)
        return tidy(site) + remove_tree(site.stage)


def tidy(site: Site, keep: int = 0) -> int:
    """Remove what changes that came to their end keep, all but number `keep`; return bytes left.

    The caller holds the lock. What cannot be removed is no failure: the next run tries again.
    """
    left = 0
    for number, folder in _folders(site):
        if number != keep and state(_read(folder)) in {"committed", "nothing"}:
            try:
                left += _drop(folder)
            except OSError:
                left += size_of(folder)
    return left


def restore(site: Site, folder: Path) -> None:
    """Put back what the change in `folder` moved, and remove it from the state folder.

    Raises Error `restore-failed` with the first file that could not be put back; everything else
    is, and the journal stays for another try.
    """
    failures = _Failures()
    with failures.noted(str(site.state)):
        engine_guard.wait(site.state / "engine.lock")
    if failures.first is None:
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
    records = _read(folder)
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
            _drop(folder)


def _remove_created(
    site: Site, folder: Path, install: Install, back: set[str], failures: _Failures
) -> None:
    """Move away what the engine wrote, whole or half, except what has been put `back` already."""
    trash = str(folder / "trash")
    os.makedirs(trash, exist_ok=True)
    used = len(os.listdir(trash))
    created = [_absolute(site, path) for path in install.created]
    whole = [_absolute(site, path) for path in install.whole]
    inner = [join(folder, "x") for path in whole for folder, _, _ in os.walk(path)]
    around = parents([*created, *inner], site)
    known = {_absolute(site, path) for path in install.temporary}
    near = {*around, site.purelib, site.platlib, site.scripts}
    gone = {*created, *bytecode(created), *(temporary(near) - known)}
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


def _drop(folder: Path) -> int:
    """Remove a change and return the bytes of it that could not be removed.

    Its journal goes first, so that what may be left stands for nothing; raises OSError where it
    does not go.
    """
    (folder / "journal").unlink(missing_ok=True)
    if folder.exists():
        sync_folder(folder)
    return remove_tree(folder)


def _folders(site: Site) -> Iterator[tuple[int, Path]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        entries = [entry for entry in site.state.iterdir() if entry.name.isdigit()]
        yield from sorted(((int(entry.name), entry) for entry in entries), reverse=True)


def _read(folder: Path) -> tuple[Record, ...]:
    try:
        return decode((folder / "journal").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()


def _absolute(site: Site, path: str) -> str:
    return os.path.normpath(join(site.purelib, path))
