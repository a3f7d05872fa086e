"""The folder with everything that is needed to undo a change.

`<site-packages>/.ortgpu-fix/` is on the filesystem of the files that are backed up, moves with the
environment, and cannot be imported by that name.

    lock                 see `environment_lock`
    engine.lock          held by what runs under `uv.guard`
    stage/               what comes: uv's prefix, and what it needs meanwhile
    <number>/journal     one change; see `journal`
    <number>/aside/      the files and the emptied folders that it backed up
    <number>/trash/      what a roll back took out
    <number>/reserve     room for a roll back on a full disk

Nothing in it is a link, and it belongs to this user, to root or to the environment's owner: it
names files to move and to delete.
"""

import contextlib
import errno
import functools
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..errors import Error
from ..facts.target import STATE_FOLDER, Target
from ..utils.files import write
from ..utils.signals import signals_deferred

AT_ONCE = 8
"""Files that are flushed, or unlinked, at the same time: each waits for the disk."""


def join(folder: str, name: str) -> str:
    """Return the path of `name` in `folder`, as a string: there are tens of thousands of them."""
    return os.path.join(folder, name)  # noqa: PTH118


class Site(NamedTuple):
    """The folders of an environment, their symbolic links resolved."""

    purelib: str
    platlib: str
    scripts: str
    prefix: str

    @classmethod
    def of(cls, target: Target) -> "Site":
        """Return the folders of `target`."""
        folders = (target.purelib, target.platlib, target.scripts, target.prefix)
        return cls(*map(os.path.realpath, folders))

    @property
    def state(self) -> Path:
        """The state folder; need not exist."""
        return Path(self.purelib, STATE_FOLDER)

    @property
    def stage(self) -> Path:
        """The folder of the wheels to install; need not exist."""
        return self.state / "stage"

    @property
    def engine_lock(self) -> Path:
        """The file that a running uv holds; need not exist."""
        return self.state / "engine.lock"

    def inside(self, path: str) -> bool:
        """Return whether `path`, as `plain_paths` returns it, is in this environment."""
        roots = (self.prefix, self.purelib, self.platlib, self.scripts)
        return any(path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)

    def may_hold(self, path: str) -> bool:
        """Return whether a change may touch `path`: in the environment, no root of it, not our own.

        Lists that others write, as a RECORD, may name our own lock.
        """
        return self.inside(path) and path not in self and not self.owns(path)

    def owns(self, path: str) -> bool:
        """Return whether `path` is a state folder of this environment, or in one.

        Filesystems may not distinguish small letters from capitals.
        """
        roots = (root for root in self if path.startswith(root.rstrip(os.sep) + os.sep))
        inner = path[len(max(roots, key=len, default="").rstrip(os.sep)) :].casefold()
        return f"{os.sep}{STATE_FOLDER}{os.sep}" in f"{inner}{os.sep}"

    def relative(self, path: str) -> str:
        """Return `path` relative to purelib; absolute where it is on another drive."""
        try:
            return os.path.relpath(path, self.purelib)
        except ValueError:
            return path


def make_folder(path: str, site: Site) -> None:
    """Make the folder `path`, and those above it, in an environment that is there.

    One that was renamed is not begun anew at its old place. Raises OSError.
    """
    if os.path.isdir(path):  # noqa: PTH112
        return
    above = os.path.dirname(path)  # noqa: PTH120
    if path in {site.prefix, above}:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    make_folder(above, site)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)  # noqa: PTH102


def plain_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return each of the absolute `paths` with the links of its folder resolved.

    A link in the last part stays: a file that is a link is moved as a link.
    """
    real = functools.cache(os.path.realpath)  # most folders have many files
    found = {}
    for path in paths:
        folder, name = os.path.split(os.path.normpath(path))
        found[path] = join(real(folder), name)
    return found


def absolute(site: Site, path: str) -> str:
    """Return the absolute path of `path` in a journal: relative to purelib."""
    return os.path.normpath(join(site.purelib, path))


def check_state_folder(site: Site) -> bool:
    """Return whether there is a state folder.

    Raises Error `state-refused` where it, or what is directly in it, in its changes and in `stage`,
    is a link, belongs to somebody else or is neither file nor folder (a pipe would be waited for);
    and `environment-read-only` where it cannot be read.
    """
    try:
        owners = {_own_user(), 0, os.lstat(site.purelib).st_uid}
        if not _is_trusted(site.state, owners):
            return False
        for entry in [*os.scandir(site.state)]:
            if _is_trusted(Path(entry.path), owners) and entry.name.isdigit():
                for name in ("journal", "aside", "trash", "engine", "reserve"):
                    _is_trusted(Path(entry.path, name), owners)
        for entry in [*os.scandir(site.stage)] if site.stage.is_dir() else []:
            _is_trusted(Path(entry.path), owners)
    except FileNotFoundError:  # there is no site-packages either
        return False
    except OSError as error:
        raise read_only(site.purelib, error) from error
    return True


def _is_trusted(path: Path, owners: set[int]) -> bool:
    """Return whether `path` exists. Raises Error `state-refused`."""
    try:
        about = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    junction = getattr(about, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_REPARSE_POINT
    if stat.S_ISLNK(about.st_mode) or junction:
        raise Error("state-refused", path=path, why="link")
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        raise Error("state-refused", path=path, why="no file")
    if about.st_uid not in owners:
        raise Error("state-refused", path=path, why=about.st_uid)
    return True


def _own_user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()


def prepare_state_folder(site: Site) -> None:
    """Create the state folder, and test that files can be created in the environment's folders.

    The caller holds the lock. Raises Error `environment-read-only` with the folder and the reason,
    and `state-refused`.
    """
    folder = site.purelib
    check_state_folder(site)
    try:
        site.state.mkdir(exist_ok=True)
        for folder in {str(site.state), site.purelib, site.platlib, site.scripts}:
            if Path(folder).is_dir():
                _test_writing(folder)
    except OSError as error:
        raise read_only(folder, error) from error


def _test_writing(folder: str) -> None:
    """Create and remove a file in `folder`, where possible one without a name."""
    unnamed = getattr(os, "O_TMPFILE", 0)
    if unnamed:
        try:
            os.close(os.open(folder, unnamed | os.O_WRONLY, 0o600))
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}:
                raise
        else:
            return
    probe = Path(folder, f"{STATE_FOLDER}-probe-{os.getpid()}")
    probe.touch()
    probe.unlink()


def read_only(folder: str, error: OSError) -> Error:
    """Return the Error `environment-read-only` with the reason."""
    reason = error.strerror or type(error).__name__
    return Error("environment-read-only", folder=folder, reason=reason)


def remove_tree(path: Path) -> int:
    """Remove `path` and what is in it, as far as possible; return the bytes that remain.

    An interrupt waits: in the middle of it `shutil` may close a file twice, and raise OSError.
    """
    with signals_deferred(), contextlib.suppress(OSError):
        if sys.platform != "win32":
            _unlink_files(path)
        shutil.rmtree(path, ignore_errors=True)
    if sys.platform == "win32" and path.exists():  # what is read-only cannot be removed there
        for folder, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(OSError):
                    Path(folder, name).chmod(stat.S_IWRITE)
        shutil.rmtree(path, ignore_errors=True)
    return size_of(path)


def shares(files: Sequence[str]) -> list[Sequence[str]]:
    """Return `files` in so many shares as there is work on at once: a task for each is slow."""
    return [files[at::AT_ONCE] for at in range(min(AT_ONCE, len(files)))]


def _unlink_files(path: Path) -> None:
    """Unlink the files below `path`, as far as possible; follow no link."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _, _, names, folder in os.fwalk(path):
            list(pool.map(functools.partial(_unlink, folder), shares(names)))


def _unlink(folder: int, names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


def size_of(path: Path) -> int:
    """Return the bytes of all files under `path`; 0 where it does not exist."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(join(folder, name)).st_size
    return total


def unshare(path: Path) -> None:
    """Give `path` a file of its own where another path, as in a copy of links, has the same one."""
    if path.stat().st_nlink > 1:
        write(path, path.read_bytes())


def sync_folder(path: str | Path) -> None:
    """Flush the entries of the folder `path` to the disk; not possible on Windows."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
