"""Refuses an undo where files changed: compares the environment with the journal of the change.

What is there must be what the change left: every file that it wrote as it wrote it, every file that
it backed up still there, nothing in the places that become free, and in the shared folders no
distribution that came later. Reads only.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH120

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Error
from ..utils.files import file_digest
from .environment_files import (
    SHARED,
    UV_CACHE,
    copy_of,
    derived,
    files_under,
    fingerprint,
    has_content,
    is_interpreter,
    is_same,
    metadata_folders,
    recorded_files,
)
from .journal import (
    Fingerprint,
    Record,
    begin_of,
    emptied_of,
    install_of,
    moves_of,
    state,
    written_of,
)
from .state_folder import Site, absolute, join, plain_paths

_LISTED = 12
"""How many of many differences a message names."""


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What is not as the journal recorded it; all paths are absolute."""

    changed: set[str] = field(default_factory=set)
    """Paths with something else at them."""
    lost: set[str] = field(default_factory=set)
    """Paths that cannot be restored: what was backed up is not there any more."""
    came: set[str] = field(default_factory=set)
    """Metadata folders of distributions that came later, and have files in the shared folders."""
    theirs: set[str] = field(default_factory=set)
    """Files of those distributions."""
    stays: set[str] = field(default_factory=set)
    """Files of the change that a distribution which came later owns as well."""

    def differences(self, site: Site) -> tuple[str, ...]:
        """Return all that differs, the most important first, relative to site-packages."""
        names = [Path(path).name for path in sorted(self.came)]
        paths = sorted(self.lost) + sorted(self.changed)
        return tuple(names + [site.relative(path) for path in paths])


def check_undoable(
    site: Site,
    folder: Path,
    records: tuple[Record, ...],
    names: Sequence[str] = (),
    *,
    allow_changed: bool = False,
) -> Comparison:
    """Compare the environment with the `records` of the change in `folder`, and return that.

    Raises Error `undo-changed` where something else changed the environment (or the distributions
    `names`), unless `allow_changed`; `undo-impossible` where the backup is not there.
    """
    found = compare(site, folder, records)
    if found.lost:
        raise Error("undo-impossible", paths=_listed(found.differences(site)))
    differs = (*names, *found.differences(site))
    if differs and not allow_changed:
        raise Error("undo-changed", names=_listed(differs))
    return found


def _listed(names: Sequence[str]) -> str:
    """Return `names` as text, the first of many."""
    more = f", … (+{len(names) - _LISTED})" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def compare(site: Site, folder: Path, records: tuple[Record, ...]) -> Comparison:
    """Compare the environment with the `records` of the change in `folder`."""
    found = Comparison()
    if not records:
        return found
    moves = [(absolute(site, path), name, seen) for path, name, seen in moves_of(records)]
    install = install_of(records)
    created = {absolute(site, path) for path in install.created} if install else set()
    # What Python compiled of the new modules since is removed with them.
    ours = created.union(derived(created))
    in_place = _compare_moved(found, folder, moves, ours, state(records) == "committed")
    _compare_created(found, site, records, in_place)
    for whole in install.whole if install is not None else ():
        inside = {*plain_paths(files_under(absolute(site, whole))).values()}
        found.changed |= inside - created - {*map(copy_of, created)} - in_place
    for path, _, _ in emptied_of(records):
        current = fingerprint(absolute(site, path))
        if current is not None and current[0] != "folder":
            found.changed.add(absolute(site, path))
    touched = created.union(path for path, _, _ in moves)
    # A link in the place of a folder would lead everything elsewhere.
    for parent in {os.path.dirname(path) for path in touched}:
        if os.path.realpath(parent) != parent:
            found.lost.add(parent)
    _compare_distributions(found, site, records, touched, {path for path, _, _ in moves})
    return found


def _compare_moved(
    found: Comparison,
    folder: Path,
    moves: Iterable[tuple[str, str, Fingerprint]],
    created: set[str],
    committed: bool,  # noqa: FBT001
) -> set[str]:
    """Compare what was backed up; return the paths at which the file from before is."""
    in_place: set[str] = set()
    for path, name, seen in moves:
        backup = join(str(folder / "aside"), name)
        kept, current = fingerprint(backup), fingerprint(path)
        is_original = is_same(current, seen)
        if kept is None:  # not moved yet, or moved back already
            if committed or not is_original:
                found.lost.add(path)
            else:
                in_place.add(path)
        elif kept[:2] != seen[:2]:
            found.lost.add(path)
        elif is_original and _hold_the_same(path, backup):
            # A copy to another filesystem that was killed before its last step.
            in_place.add(path)
        elif current is not None and path not in created:
            found.changed.add(path)
    return in_place


def _hold_the_same(path: str, backup: str) -> bool:
    """Return whether two files, or else two links, are equal: the time alone proves little."""
    one, other = Path(path), Path(backup)
    with contextlib.suppress(OSError):
        if one.is_symlink():
            return one.readlink() == other.readlink()
        return file_digest(one) == file_digest(other)
    return False


def _compare_created(
    found: Comparison,
    site: Site,
    records: tuple[Record, ...],
    in_place: set[str],
) -> None:
    """Compare what has come, or may have come by the time of a kill."""
    install, written = install_of(records), written_of(records)
    if install is None:
        return
    committed = state(records) == "committed"
    seen: tuple[Fingerprint | None, ...] = written.seen if written else ()
    for at, relative in enumerate(install.created):
        path = absolute(site, relative)
        if path in in_place or Path(path).name == UV_CACHE:  # written last, and again by uv
            continue
        current, digest = fingerprint(path), install.hashes[at]
        if current is None:
            if committed and seen[at] is not None:
                found.changed.add(path)
        elif seen and seen[at] is None:  # it was not there when the change ended
            found.stays.add(path)
        elif seen and current == seen[at]:
            continue
        elif not has_content(path, install.sizes[at], digest):
            found.changed.add(path)


def _compare_distributions(
    found: Comparison,
    site: Site,
    records: tuple[Record, ...],
    touched: set[str],
    moved: set[str],
) -> None:
    """Find the distributions that came after the change and share files with it."""
    install = install_of(records)
    known = {absolute(site, path) for path in begin_of(records).present}
    known |= {absolute(site, path) for path in install.whole} if install else set()
    shared = {join(root, SHARED) + os.sep for root in (site.purelib, site.platlib)}
    shared = {start for start in shared if any(path.startswith(start) for path in touched)}
    others: set[str] = set()
    for path in metadata_folders(site):
        if path in known:
            continue
        files = recorded_files(path) or set()
        if any(file.startswith(tuple(shared)) for file in files) if shared else False:
            found.came.add(path)
            theirs = {*files, *files_under(path), path}
            found.theirs |= {each for each in theirs if site.may_hold(each)}
        else:
            others |= files
        found.stays |= (files & touched) - moved
    if found.theirs:  # what others own as well, or Python itself, is not removed with them
        for path in known.intersection(metadata_folders(site)):
            others |= recorded_files(path) or set()
        python = {path for path in found.theirs if is_interpreter(site, path)}
        found.theirs -= (others - touched) | python
