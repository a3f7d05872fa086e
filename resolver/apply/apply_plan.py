"""Do a plan: stage, set aside, install, verify; and put everything back where one of them fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..engine.choose import Engine
from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..plan.model import Plan
from ..utils.progress import Progress
from . import conflicts
from .environment_lock import hold_environment_lock
from .history import UNFINISHED, prune_history, recorded_changes
from .staging import StagedWheels, stage_wheels
from .state_folder import Site, prepare_state_folder, remove_tree
from .swap import Verify, swap_distributions

RESUMED = frozenset(
    {"download-too-slow", "download-truncated", "index-refused", "index-unreachable"}
)
"""A network that fails may be back soon: what was brought by then is kept for the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the user has allowed that is refused without."""

    conflicts: bool = False
    """Distributions that stay may lose what they require."""
    externally_managed: bool = False
    conda: bool = False
    """pip's distributions may be changed inside a conda environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done."""

    removed: tuple[str, ...]
    """Canonical names of the distributions that left for good."""
    installed: tuple[tuple[str, str], ...]
    """Canonical name and version of what came."""
    engine: str
    conflicts: tuple[conflicts.UnmetRequirement, ...]
    """New conflicts that were allowed."""
    untidy: int
    """Bytes of former changes or of the stage that could not be removed; 0 is usual."""


def apply(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    engine: Engine,
    verify: Verify,
    progress: Progress,
    allowed: Allowed | None = None,
    local: Mapping[str, bytes] | None = None,
) -> Applied:
    """Do `plan` in `target`, whose installed distributions are those that the plan was made for.

    `local` are wheels that were made here, by file name; they are installed too. On return
    everything is done and verified, and `restore.undo` can take it back until the next change.

    Before the first change raises Error `externally-managed`, `conda-environment`,
    `user-environment`, `environment-read-only`, `environment-locked`, `unfinished-change`,
    `environment-changed`, `would-conflict`, those of `stage.stage` and of `leaving.leaving`.
    After it everything is put back and Error `install-failed`, `verify-failed`, `apply-interrupted`
    or `apply-failed` says why; `restore-failed` where that could not be done.
    """
    allowed = allowed or Allowed()
    check_environment_owner(target, allowed)
    site = Site.of(target)
    with hold_environment_lock(site):
        prepare_state_folder(site)
        if any(one.state in UNFINISHED for one in recorded_changes(site)):
            raise Error("unfinished-change", folder=target.prefix)
        try:
            staged = stage_wheels(
                plan, target, index=index, engine=engine, progress=progress, local=local
            )
            broken = _conflicts(plan, target, staged, allowed)
            _check_unchanged(plan, target, staged)
        except Error as error:
            if error.code not in RESUMED:
                remove_tree(site.stage)
            raise
        try:
            swap_distributions(
                plan, target, staged, engine=engine, verify=verify, progress=progress
            )
        finally:
            untidy = remove_tree(site.stage) + prune_history(site)
    return Applied(
        removed=plan.uninstall,
        installed=_coming(staged),
        engine=engine.name,
        conflicts=broken,
        untidy=untidy,
    )


def check_environment_owner(target: Target, allowed: Allowed) -> None:
    """Refuse an environment that is somebody else's to change.

    Raises Error `externally-managed`, `conda-environment` or `user-environment`.
    """
    if target.externally_managed and not allowed.externally_managed:
        raise Error("externally-managed", path=target.executable)
    if target.kind == "conda" and not allowed.conda:
        raise Error("conda-environment", folder=target.prefix)
    if target.kind == "user":
        raise Error("user-environment", path=target.executable)


def _coming(staged: StagedWheels) -> tuple[tuple[str, str], ...]:
    return tuple((one.wheel.name, one.wheel.version) for one in staged.staged)


def _conflicts(
    plan: Plan, target: Target, staged: StagedWheels, allowed: Allowed
) -> tuple[conflicts.UnmetRequirement, ...]:
    """Return what distributions would miss then and do not miss now, where that is allowed."""
    now: dict[str, conflicts.InstalledDistribution] = {}
    for one in target.installed:
        has = conflicts.InstalledDistribution(
            name=one.key, version=one.version, requires=one.requires
        )
        now.setdefault(one.key, has)
    then = {name: has for name, has in now.items() if name not in plan.uninstall}
    for new in staged.contents:
        then[new.name] = conflicts.InstalledDistribution(
            name=new.name, version=new.version, requires=new.requires
        )
    environment = conflicts.environment_of(target.version, target.implementation)
    broken = conflicts.new_conflicts(now.values(), then.values(), environment)
    if broken and not allowed.conflicts:
        raise Error("would-conflict", conflicts="; ".join(map(str, broken)))
    return broken


def _check_unchanged(plan: Plan, target: Target, staged: StagedWheels) -> None:
    """Refuse where the distributions of the plan are not those that it was made for any more."""
    for one in target.installed:
        concerned = one.key in plan.uninstall or one.key in dict(_coming(staged))
        if concerned and not Path(one.metadata_path).exists():
            raise Error("environment-changed", name=one.name)
    known = {Path(one.metadata_path).name for one in target.installed}
    known |= {Path(path).name for path in target.broken}
    for new in staged.contents:
        if new.info not in known and Path(target.purelib, new.info).exists():
            raise Error("environment-changed", name=new.name)
