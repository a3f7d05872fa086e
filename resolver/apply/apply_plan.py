"""The transaction: stages wheels, sets files aside, installs, verifies; rolls back on failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..companions.build import LocalWheel
from ..engine.choose import Engine
from ..errors import Error
from ..facts.markers import target_markers
from ..facts.target import Target
from ..index.client import Index
from ..plan.model import Plan
from ..utils.progress import Progress
from ..utils.signals import signals_held
from .conflicts import UnmetRequirement, new_conflicts
from .environment_lock import hold_environment_lock
from .history import UNFINISHED, prune_history, recorded_changes
from .open_files import check_path_lengths
from .staging import Confirm, StagedWheels, stage_wheels
from .state_folder import Site, prepare_state_folder, remove_tree, size_of
from .swap import Verify, swap_distributions
from .torch_requirements import distributions_afterwards

_RESUMED = frozenset(
    {"download-too-slow", "download-truncated", "index-refused", "index-unreachable"}
)
"""The network may be back soon: after these errors the next run uses what was downloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What is refused unless the user allows it."""

    conflicts: bool = False
    """Distributions that stay may lose a dependency."""
    externally_managed: bool = False
    conda: bool = False
    """Distributions that pip installed into a conda environment may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done."""

    removed: tuple[str, ...]
    """Canonical names."""
    installed: tuple[tuple[str, str], ...]
    """Canonical names and versions."""
    engine: str
    conflicts: tuple[UnmetRequirement, ...]
    """New conflicts that were allowed."""
    untidy: int
    """Bytes of earlier changes or of the stage that could not be removed; usually 0."""


def apply(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    engine: Engine,
    verify: Verify,
    progress: Progress,
    allowed: Allowed | None = None,
    confirm: Confirm = lambda _: None,
    companions: Sequence[LocalWheel] = (),
) -> Applied:
    """Do `plan` in `target`, whose installed distributions are those that the plan was made for.

    `confirm` is asked once, before the download. `companions` are installed, too. On return
    everything is done and verified, and `rollback.undo_last` can undo it until the next change.

    Before the first change raises Error `externally-managed`, `conda-environment`,
    `user-environment`, `environment-read-only`, `path-too-long`, `environment-locked`,
    `unfinished-change`, `environment-changed`, `would-conflict`, and those of `stage_wheels` (so of
    `confirm`) and of `files_to_remove`. Later failures are rolled back, and Error `verify-failed`,
    `apply-interrupted` or `apply-failed` says why; `restore-failed` where that was not possible.
    """
    allowed = allowed or Allowed()
    check_environment_owner(target, allowed)
    site = Site.of(target)
    with hold_environment_lock(site):
        check_path_lengths(str(site.stage / "wheels" / wheel.file) for wheel in plan.install)
        prepare_state_folder(site)
        if any(change.state in UNFINISHED for change in recorded_changes(site)):
            raise Error("unfinished-change", folder=target.prefix)
        try:
            staged = stage_wheels(
                plan,
                target,
                index=index,
                engine=engine,
                progress=progress,
                confirm=confirm,
                companions=companions,
            )
            conflicts = _allowed_conflicts(plan, target, staged, allowed)
            _check_unchanged(plan, target, staged)
        except Error as error:
            if error.code not in _RESUMED:
                remove_tree(site.stage)
            raise
        with signals_held(to_the_end=True):
            try:
                swap_distributions(plan, target, staged, verify=verify, progress=progress)
            finally:
                untidy = _tidy(site)
    return Applied(
        removed=plan.uninstall,
        installed=tuple((wheel.name, wheel.version) for wheel in staged.wheels),
        engine=engine.name,
        conflicts=conflicts,
        untidy=untidy,
    )


def _tidy(site: Site) -> int:
    """Remove what is not needed any more; return the bytes that remain. Raises nothing."""
    try:
        return remove_tree(site.stage) + prune_history(site)
    except (Error, OSError):
        return size_of(site.state)


def check_environment_owner(target: Target, allowed: Allowed) -> None:
    """Raise Error `externally-managed`, `conda-environment` or `user-environment`."""
    if target.externally_managed and not allowed.externally_managed:
        raise Error("externally-managed", path=target.executable)
    if target.kind == "conda" and not allowed.conda:
        raise Error("conda-environment", folder=target.prefix)
    if target.kind == "user":
        raise Error("user-environment", path=target.executable)


def _allowed_conflicts(
    plan: Plan, target: Target, staged: StagedWheels, allowed: Allowed
) -> tuple[UnmetRequirement, ...]:
    requires = dict(zip(staged.wheels, staged.tree.requires, strict=True))
    then = distributions_afterwards(plan, target, requires)
    environment = target_markers(target)
    conflicts = new_conflicts(target.installed, then.installed, environment)
    if conflicts and not allowed.conflicts:
        raise Error("would-conflict", conflicts="; ".join(map(str, conflicts)))
    return conflicts


def _check_unchanged(plan: Plan, target: Target, staged: StagedWheels) -> None:
    """Refuse where the environment changed since `target` was read."""
    names = {*plan.uninstall, *(wheel.name for wheel in staged.wheels)}
    for installed in target.installed:
        if installed.key in names and not Path(installed.metadata_path).exists():
            raise Error("environment-changed", name=installed.name)
    known = {Path(installed.metadata_path).name for installed in target.installed}
    known |= {Path(path).name for path in target.broken}
    for wheel, info in zip(staged.wheels, staged.tree.infos, strict=True):
        if Path(info).name not in known and Path(info).exists():
            raise Error("environment-changed", name=wheel.name)
