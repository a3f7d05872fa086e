"""Swaps distributions by renaming, verifies; or changes nothing.

The caller holds the lock of the environment and has staged everything: what comes lies unpacked
beside the environment, and no engine runs while that changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timezone

from ..errors import Error
from ..facts.target import Target
from ..plan.model import Plan
from ..utils.files import disk_error
from ..utils.progress import Progress
from ..utils.signals import interruptible, signals_held
from .comparison import metadata_folders
from .journal import Begin
from .open_files import check_files_movable, check_path_lengths, processes_using
from .removal import files_to_remove
from .rollback import roll_back
from .set_aside import Incoming, JournaledChange, sync_files
from .staging import StagedWheels
from .state_folder import Site, plain_paths

Verify = Callable[[], tuple[bool, str]]
"""Verifies the environment: returns whether it works, and the reason for people if not."""


class _VerificationFailed(Exception):  # noqa: N818 - a verdict
    """The verification failed."""


def swap_distributions(
    plan: Plan,
    target: Target,
    staged: StagedWheels,
    *,
    verify: Verify,
    progress: Progress,
) -> None:
    """Change the environment.

    Raises, with the environment as before, the Errors of `files_to_remove`, `files-in-use`,
    `path-too-long`, `disk-full` or `disk-failed` before the first change, and later
    `verify-failed`, `apply-interrupted` or `apply-failed`; `restore-failed` where the roll back
    failed, `restore-changed` where something else changed the environment meanwhile.
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
    )
    incoming = [
        Incoming(real[path], source, tree.hashes.get(path, ""))
        for path, source in tree.files.items()
    ]
    with signals_held():
        try:
            with interruptible():
                progress("sync")
                sync_files(file.source for file in incoming)
                change.begin(begin, files=len(paths) + len(incoming))
                progress("set-aside", files=len(paths))
                change.set_aside(paths)
                change.place(incoming, tree.infos, tree.folders)
                progress("verify")
                works, reason = verify()
                if not works:
                    raise _VerificationFailed(reason)  # noqa: TRY301 - as every failure here
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


def _outcome(error: BaseException, change: JournaledChange) -> BaseException:
    """Return what to raise after the roll back."""
    if isinstance(error, OSError) and not change.touched:
        return disk_error(error, change.folder)
    if isinstance(error, _VerificationFailed):
        return Error("verify-failed", reason=str(error))
    if isinstance(error, KeyboardInterrupt):
        return Error("apply-interrupted")
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return Error("apply-failed", cause=f"{error.strerror or type(error).__name__}{where}")
    return Error("apply-failed", cause=str(error) or type(error).__name__)
