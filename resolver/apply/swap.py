"""Swaps distributions: sets files aside, installs staged wheels, verifies; or changes nothing.

The caller holds the lock of the environment and has staged everything.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ..engine.choose import Engine
from ..errors import Error
from ..facts.target import Target
from ..index.download import disk_error
from ..plan.model import Plan
from ..utils.progress import Progress
from ..utils.signals import signals_as_interrupt, signals_ignored
from .journal import Begin, Mark
from .open_files import check_files_movable, processes_using
from .removal import files_to_remove
from .rollback import roll_back
from .set_aside import JournaledChange, append
from .staging import StagedWheels
from .state_folder import Site, join, remove_tree
from .wheel_contents import Scheme, WheelContents

Verify = Callable[[], tuple[bool, str]]
"""Verifies the environment: returns whether it works, and the reason for people if not."""
_OWN = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json")
"""Files that engines write into a dist-info folder besides those of the wheel."""


class _VerificationFailed(Exception):  # noqa: N818 - a verdict
    """The verification failed, or the engine did not write what it should."""


def swap_distributions(
    plan: Plan,
    target: Target,
    staged: StagedWheels,
    *,
    engine: Engine,
    verify: Verify,
    progress: Progress,
) -> None:
    """Change the environment.

    Raises, with the environment as before, the Errors of `files_to_remove`, `files-in-use`,
    `disk-full` or `disk-failed` before the first change, and later `install-failed`,
    `verify-failed`, `apply-interrupted` or `apply-failed`; `restore-failed` where the roll back
    failed.
    """
    site = Site.of(target)
    coming = {one.wheel.name: one.wheel.version for one in staged.staged}
    created = [path for one in staged.contents for path in _written(one, site, target)]
    whole = [join(_root(one, site), one.info) for one in staged.contents]
    paths = files_to_remove(
        target,
        site,
        frozenset(plan.uninstall) | frozenset(coming),
        coming=frozenset(coming),
        incoming=created,
        whole=whole,
    )
    check_files_movable(paths)
    holders = processes_using(paths)
    if holders:
        progress("in-use", processes=", ".join(holders))
    change = JournaledChange(site)
    with signals_as_interrupt():
        try:
            change.begin(
                Begin(
                    plan=", ".join(f"{name} {version}" for name, version in coming.items()),
                    removed=plan.uninstall,
                    installed=tuple(coming.items()),
                    when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                )
            )
            progress("set-aside", files=len(paths))
            change.set_aside(paths)
            _install(change, staged, target, created, whole, engine, progress)
            progress("verify")
            _insist(*verify())
            with signals_ignored():
                change.commit()
        except BaseException as error:
            with signals_ignored():
                progress("restore")
                with contextlib.suppress(OSError):
                    append(change.folder, Mark(step="undo"))
                roll_back(site, change.folder)
            raise _outcome(error, change) from error


def _install(  # noqa: PLR0917
    change: JournaledChange,
    staged: StagedWheels,
    target: Target,
    created: Sequence[str],
    whole: Sequence[str],
    engine: Engine,
    progress: Progress,
) -> None:
    site = change.site
    lock = join(site.prefix, ".lock")  # uv's, in a venv
    plain = [site.plain(path) for path in created]
    empty = [path for one in staged.contents for path in _placed(one.folders, one, site, target)]
    change.announce([*plain, *([] if Path(lock).exists() else [lock])], whole, empty)
    if staged.staged:
        progress("install", engine=engine.name, count=len(staged.staged))
        folder = change.folder / "engine"
        engine.install(staged.staged, target, folder, site.state / "engine.lock")
        remove_tree(folder)
    progress("sync")
    change.installed(plain)
    for info in whole:
        _insist(Path(info, "RECORD").is_file(), f"{Path(info).name} was not installed")
    for path in plain:
        _insist(Path(path).name in _OWN or Path(path).exists(), f"{path} was not installed")


def _insist(right: bool, reason: str) -> None:  # noqa: FBT001
    if not right:
        raise _VerificationFailed(reason)


def _outcome(error: BaseException, change: JournaledChange) -> BaseException:
    """Return what to raise after the roll back."""
    if isinstance(error, OSError) and not change.touched:
        return disk_error(error, change.folder)
    if isinstance(error, _VerificationFailed):
        return Error("verify-failed", reason=str(error))
    if isinstance(error, KeyboardInterrupt):
        return Error("apply-interrupted")
    if isinstance(error, Error) and error.code == "engine-failed":
        return Error("install-failed", said=error.values.get("said", "-"))
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return Error("apply-failed", cause=f"{error.strerror or type(error).__name__}{where}")
    return Error("apply-failed", cause=str(error) or type(error).__name__)


def _root(one: WheelContents, site: Site) -> str:
    """Return the folder that holds the dist-info of a wheel."""
    pure = any(scheme == "purelib" and path.startswith(one.info) for scheme, path in one.files)
    return site.purelib if pure else site.platlib


def _written(one: WheelContents, site: Site, target: Target) -> Iterator[str]:
    """Give the absolute path of every file that installing `one` writes."""
    yield from _placed(one.files, one, site, target)
    suffix = ".exe" if sys.platform == "win32" else ""
    scripts: list[tuple[Scheme, str]] = [("scripts", f"{name}{suffix}") for name in one.scripts]
    yield from _placed(scripts, one, site, target)
    info = join(_root(one, site), one.info)
    for name in _OWN:
        yield join(info, name)


def _placed(
    places: Iterable[tuple[Scheme, str]], one: WheelContents, site: Site, target: Target
) -> list[str]:
    """Return the absolute paths of files or folders of the wheel `one`."""
    version = ".".join(target.version.split(".")[:2])
    roots = {
        "purelib": site.purelib,
        "platlib": site.platlib,
        "scripts": site.scripts,
        "data": site.prefix,
        "headers": str(Path(site.prefix, "include", "site", f"python{version}", one.name)),
    }
    return [join(roots[scheme], path) for scheme, path in places]
