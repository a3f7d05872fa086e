"""Swaps distributions: sets files aside, installs staged wheels, verifies; or changes nothing.

The caller holds the lock of the environment and has staged everything.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ..engine.choose import Engine
from ..errors import Error
from ..facts.target import Target
from ..index.download import disk_error
from ..plan.model import Plan
from ..utils.progress import Progress
from ..utils.signals import interruptible, signals_held
from .comparison import metadata_folders
from .journal import Begin
from .open_files import check_files_movable, processes_using
from .removal import NAMESPACE, files_to_remove, recorded_files
from .rollback import roll_back
from .set_aside import JournaledChange
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
    failed, `restore-changed` where something else changed the environment meanwhile.
    """
    site = Site.of(target)
    coming = {one.wheel.name: one.wheel.version for one in staged.staged}
    expected = _expected(staged, site, target)
    created = {path: digest for path, (_, digest) in expected.items()}
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
    begin = Begin(
        plan=", ".join(f"{name} {version}" for name, version in coming.items()),
        removed=plan.uninstall,
        installed=tuple(coming.items()),
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        present=tuple(map(site.relative, metadata_folders(site))),
        packages=tuple(
            (one.wheel.name, one.wheel.version, one.wheel.index_url, one.wheel.sha256)
            for one in staged.staged
        ),
    )
    with signals_held():
        try:
            with interruptible():
                change.begin(begin, files=len(paths) + len(created))
                progress("set-aside", files=len(paths))
                change.set_aside(paths)
                _install(change, staged, target, expected, whole, engine, progress)
                progress("verify")
                _insist(*verify())
            change.commit()
        except BaseException as error:
            with contextlib.suppress(Exception):  # whoever reads what is said may be gone
                progress("restore")
            _put_back(site, change)
            raise _outcome(error, change) from error


def _put_back(site: Site, change: JournaledChange) -> None:
    """Roll back. Raises Error `restore-failed` or `restore-changed`, whatever goes wrong."""
    try:
        roll_back(site, change.folder)
    except Error as error:
        if error.code == "restore-failed":
            raise
        listed = error.values.get("names") or error.values.get("paths") or error
        raise Error("restore-changed", names=listed) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise Error("restore-failed", path=site.state, reason=reason, count=1) from error


def _install(  # noqa: PLR0917
    change: JournaledChange,
    staged: StagedWheels,
    target: Target,
    expected: Mapping[str, tuple[int, str]],
    whole: Sequence[str],
    engine: Engine,
    progress: Progress,
) -> None:
    site = change.site
    lock = join(site.prefix, ".lock")  # uv's, in a venv
    plain = {site.plain(path): about for path, about in expected.items()}
    empty = [path for one in staged.contents for path in _placed(one.folders, one, site, target)]
    created = [*plain, *([] if Path(lock).exists() else [lock])]
    change.announce(created, whole, empty, plain)
    if staged.staged:
        progress("install", engine=engine.name, count=len(staged.staged))
        folder = change.folder / "engine"
        engine.install(staged.staged, target, folder, site.state / "engine.lock")
        remove_tree(folder)
    progress("sync")
    change.installed()
    for info in whole:
        _insist(Path(info, "RECORD").is_file(), f"{Path(info).name} was not installed")
        # An engine that means another folder than we do has written it there.
        beyond = {path for path in recorded_files(info) or () if not path.endswith(".pyc")}
        beyond -= plain.keys()
        _insist(not beyond, f"{min(beyond, default='')} was written, and is no file of the wheels")
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


def _expected(staged: StagedWheels, site: Site, target: Target) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of every file that installing writes, by its absolute path.

    -1 and "" for what the engine makes itself.
    """
    suffix = ".exe" if sys.platform == "win32" else ""
    found: dict[str, tuple[int, str]] = {}
    for one in staged.contents:
        paths = _placed(one.files, one, site, target)
        for path, about in zip(paths, zip(one.sizes, one.hashes, strict=True), strict=True):
            if found.setdefault(path, about) != about:
                _check_shared(path, one, site)
                found[path] = (-1, "")
        scripts: list[tuple[Scheme, str]] = [("scripts", f"{name}{suffix}") for name in one.scripts]
        info = join(_root(one, site), one.info)
        made = [*_placed(scripts, one, site, target), *(join(info, name) for name in _OWN)]
        found |= dict.fromkeys(made, (-1, ""))
    return found


def _check_shared(path: str, one: WheelContents, site: Site) -> None:
    """Refuse two wheels that write different bytes to one path. Raises Error `wheel-overwrites`."""
    if path not in {join(root, NAMESPACE) for root in (site.purelib, site.platlib)}:
        raise Error("wheel-overwrites", path=path, owner=one.name)


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
