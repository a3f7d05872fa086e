"""The transaction: stages wheels, sets files aside, installs, verifies; or changes nothing.

What comes lies unpacked beside the environment before the first file is touched, and no uv runs
while that changes. A failure, Ctrl-C and every signal that ends a program lead to a roll back.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType

from ..companions.build import LocalWheel
from ..errors import Error
from ..facts.markers import target_markers
from ..facts.own_projects import without_tool_bounds
from ..facts.target import Target
from ..index.client import Index
from ..plan.model import Plan
from ..project.model import FileChange
from ..resolve.environment import Environment, UnmetRequirement, consequences
from ..utils.files import disk_error
from ..utils.progress import Progress
from ..utils.signals import interruptible, signals_held
from ..uv.program import Uv
from .after_change import incoming_distributions
from .before_change import (
    Allowed,
    check_environment_owner,
    check_files_movable,
    check_files_unchanged,
    check_path_lengths,
    check_unchanged,
    processes_using,
)
from .chosen_wheels import Confirm
from .environment_files import metadata_folders
from .environment_lock import hold_environment_lock
from .files_to_remove import check_removable, files_to_remove
from .history import UNFINISHED, delete_journal, prune_history, recorded_changes
from .journal import Begin
from .journaled_change import Incoming, JournaledChange, sync_files
from .rollback import roll_back
from .staging import StagedWheels, note_times, stage_wheels
from .state_folder import Site, plain_paths, prepare_state_folder, remove_tree, size_of

Verify = Callable[[], tuple[bool, str]]
"""Verifies the environment: returns whether it works, and the reason for people if not."""
_GONE = frozenset({"restore-lost", "restore-moved"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done."""

    removed: tuple[str, ...]
    """Canonical names."""
    installed: tuple[tuple[str, str], ...]
    """Canonical names and versions."""
    conflicts: tuple[UnmetRequirement, ...]
    """New conflicts that were allowed."""
    untidy: int
    """Bytes of earlier changes or of the stage that could not be removed; usually 0."""


def apply(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    uv: Uv,
    verify: Verify,
    progress: Progress,
    allowed: Allowed | None = None,
    confirm: Confirm = lambda _: None,
    companions: Sequence[LocalWheel] = (),
    files: Sequence[FileChange] = (),
    homes: Mapping[Path, bytes] = MappingProxyType({}),
) -> Applied:
    """Do `plan` in `target`, whose installed distributions are those that the plan was made for.

    `confirm` is asked once, before the download. `companions` are installed, too, and `files` of
    the user's project change with the environment; `homes` are its wheels of the companions. On
    return everything is done and verified, and `rollback.undo_last` can undo it until the next
    change.

    Before the first change raises Error `externally-managed`, `conda-environment`,
    `user-environment`, `environment-read-only`, `path-too-long`, `environment-locked`,
    `unfinished-change`, `environment-changed`, `file-changed`, `file-unwritable`, `would-conflict`,
    and those of `stage_wheels` (so of `confirm`) and of `files_to_remove`. Later failures are
    rolled back, and Error `verify-failed`, `apply-interrupted` or `apply-failed` says why;
    `restore-…` where that was not possible.
    """
    allowed = allowed or Allowed()
    check_environment_owner(target, allowed)
    site = Site.of(target)
    coming = frozenset(
        {wheel.name for wheel in plan.install} | {companion.name for companion in companions}
    )
    check_removable(target, site, coming.union(plan.uninstall), coming)  # before any download
    with hold_environment_lock(site):
        prepare_state_folder(site)
        if any(change.state in UNFINISHED for change in recorded_changes(site)):
            raise Error("unfinished-change", folder=target.prefix)
        check_files_unchanged(files)
        try:
            staged = stage_wheels(
                plan,
                target,
                index=index,
                uv=uv,
                progress=progress,
                confirm=confirm,
                companions=companions,
                files=files,
                homes=homes,
            )
            conflicts = _allowed_conflicts(plan, target, staged, allowed)
            check_unchanged(plan, target, staged)
        except BaseException:
            remove_tree(site.stage)  # gigabytes that nobody goes on with: uv's cache has them
            raise
        with signals_held(to_the_end=True):
            try:
                check_files_unchanged(files)
                _swap(plan, target, staged, files, homes, verify=verify, progress=progress)
            finally:
                untidy = _tidy(site)
    return Applied(
        removed=plan.uninstall,
        installed=tuple((wheel.name, wheel.version) for wheel in staged.wheels),
        conflicts=conflicts,
        untidy=untidy,
    )


def _tidy(site: Site) -> int:
    """Remove what is not needed any more; return the bytes that remain. Raises nothing."""
    try:
        return remove_tree(site.stage) + prune_history(site)
    except (Error, OSError):
        return size_of(site.state)


def _allowed_conflicts(
    plan: Plan, target: Target, staged: StagedWheels, allowed: Allowed
) -> tuple[UnmetRequirement, ...]:
    requires = dict(zip(staged.wheels, staged.tree.requires, strict=True))
    now = [without_tool_bounds(package) for package in target.in_use]
    before = Environment(now, target_markers(target))
    incoming = map(without_tool_bounds, incoming_distributions(requires))
    conflicts = consequences(before, plan.uninstall, incoming).unmet
    if conflicts and not allowed.conflicts:
        raise Error("would-conflict", conflicts="; ".join(map(str, conflicts)))
    return conflicts


class _VerificationFailed(Exception):  # noqa: N818 - a verdict
    """The verification failed."""


def _swap(
    plan: Plan,
    target: Target,
    staged: StagedWheels,
    files: Sequence[FileChange] = (),
    homes: Mapping[Path, bytes] = MappingProxyType({}),
    *,
    verify: Verify,
    progress: Progress,
) -> None:
    """Change the environment, and the files of the user's project with it.

    Raises, with the environment as before, the Errors of `files_to_remove`, `files-in-use`,
    `path-too-long`, `disk-full` or `disk-failed` before the first change, and later
    `verify-failed`, `apply-interrupted` or `apply-failed`; `restore-failed` where the roll back
    failed, `restore-changed` where something else changed the environment meanwhile,
    `restore-moved` or `restore-lost` where it, or what a roll back needs, is gone.
    """
    site = Site.of(target)
    tree = staged.tree
    coming = {wheel.name: wheel.version for wheel in staged.wheels}
    # A link to a folder of the environment may lead elsewhere: what counts is where it leads.
    real = plain_paths(tree.files)
    paths = files_to_remove(
        target,
        site,
        frozenset(plan.uninstall) | frozenset(coming),
        coming=frozenset(coming),
        incoming={real[path]: tree.hashes.get(path, "") for path in tree.files},
        whole=tree.infos,
    )
    check_path_lengths(real.values())
    check_files_movable(paths)
    holders = processes_using(paths)
    if holders:
        progress("in-use", processes=", ".join(holders))
    own = {str(file.path): source for file, source in zip(files, staged.files, strict=True)}
    replaced = [str(file.path) for file in files if file.before is not None]
    made = {file.path.parent for file in files if not file.path.parent.exists()}
    change = JournaledChange(site)
    begin = Begin(
        plan=", ".join(f"{name} {version}" for name, version in coming.items()),
        removed=plan.uninstall,
        installed=tuple(coming.items()),
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        present=tuple(map(site.relative, metadata_folders(site))),
        packages=tuple(
            (wheel.name, wheel.version, wheel.index_url, wheel.sha256) for wheel in staged.wheels
        ),
        files=tuple(map(site.relative, own)),
    )
    incoming = [
        Incoming(real[path], source, tree.hashes.get(path, ""))
        for path, source in tree.files.items()
    ]
    incoming += [
        Incoming(str(file.path), own[str(file.path)], hashlib.sha256(file.after).hexdigest())
        for file in files
    ]
    with signals_held():
        try:
            with interruptible():
                progress("sync")
                sync_files(file.source for file in incoming)
                change.begin(begin, files=len(paths) + len(incoming))
                progress("set-aside", files=len(paths))
                change.back_up([*paths, *replaced], copied=replaced)
                change.place(incoming, tree.infos, [*tree.folders, *map(str, made)])
                note_times(homes, tree.infos)
                progress("verify")
                works, reason = verify()
                if not works:
                    raise _VerificationFailed(reason)  # noqa: TRY301 - as every failure here
            change.commit()
        except BaseException as error:
            with contextlib.suppress(Exception):  # whoever reads what is said may be gone
                progress("restore")
            _restore(site, change)
            raise _outcome(error, change) from error


def _restore(site: Site, change: JournaledChange) -> None:
    """Roll back. Raises Error `restore-…`, whatever goes wrong."""
    if not change.begun:
        with contextlib.suppress(OSError):
            delete_journal(change.folder)
        return
    try:
        roll_back(site, change.folder)
    except Error as error:
        if error.code in _GONE and not change.touched:
            return  # nothing had been done that was to be restored
        if error.code.startswith("restore-"):
            raise
        listed = error.values.get("names") or error.values.get("paths") or error
        raise Error("restore-changed", names=listed) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise Error("restore-failed", path=site.state, reason=reason, count=1) from error


def _outcome(error: BaseException, change: JournaledChange) -> BaseException:
    """Return what to raise after the roll back."""
    if isinstance(error, KeyboardInterrupt | BrokenPipeError):  # Ctrl-C; nobody reads any more
        return Error("apply-interrupted")
    if isinstance(error, OSError) and not change.touched:
        return disk_error(error, change.folder)
    if isinstance(error, _VerificationFailed):
        return Error("verify-failed", reason=str(error))
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return Error("apply-failed", cause=f"{error.strerror or type(error).__name__}{where}")
    return Error("apply-failed", cause=str(error) or type(error).__name__)
