"""Stages the wheels to install beside the environment, on its filesystem, and checks them.

After staging no network is needed, and it is known which files will be written.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..companions.build import LocalWheel
from ..errors import Error
from ..evidence.ranges import RemoteFile
from ..facts.target import Target
from ..index.client import Index
from ..index.folder import local_path
from ..plan.model import Plan
from ..plan.wheels import Pinned, Wheel
from ..project.model import FileChange
from ..utils.files import disk_error, give_to_owner
from ..utils.progress import Progress
from ..uv.compile import may_cache
from ..uv.guard import wait_for_engine
from ..uv.install import Prefix, compile_modules, install, install_cached
from ..uv.program import Uv
from .chosen_wheels import Confirm, choose_wheels, chosen_by_others
from .environment_files import UV_CACHE
from .staged_tree import (
    StagedTree,
    break_hardlinks,
    long_path,
    read_staged_tree,
    writes_in_place,
)
from .state_folder import Site, remove_tree
from .wheel_contents import read_contents, read_wheel_contents

_UNPACKED = 1.7
"""Unpacked size over wheel size, of those whose contents are not read; NVIDIA's have 1.3 to 1.7."""
_MARGIN = 64 << 20
_SECONDS = 1.0
_AT_ONCE = 8


class StagedWheels(NamedTuple):
    """Everything that will be installed, unpacked."""

    wheels: tuple[Wheel, ...]
    tree: StagedTree
    """Of these wheels, in their order."""
    files: tuple[str, ...] = ()
    """Where the new files of the user's project lie, in their order."""


def stage_wheels(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    uv: Uv,
    progress: Progress,
    confirm: Confirm,
    companions: Sequence[LocalWheel] = (),
    files: Sequence[FileChange] = (),
    homes: Mapping[Path, bytes] = MappingProxyType({}),
) -> StagedWheels:
    """Stage what `plan` installs, what that requires besides, `companions`, and `files`.

    `homes` are the wheels of the companions that the user's project names, each with what its tool
    notes of where it is from.

    `confirm` is asked once, before the download. Raises Error `no-space`, those of `compile_plan`,
    `confirm`, `uv.install` and `read_staged_tree`, and `wheel-escapes`, `wheel-odd`, `wheel-huge`
    or `wheel-broken` for a wheel that must not be unpacked. The environment is unchanged then.
    """
    site = Site.of(target)
    into = Prefix(target, site.stage / "tree", site.stage / "uv", site.engine_lock)
    try:
        wait_for_engine(into.lock)  # of a run that was killed
        into.lock.unlink(missing_ok=True)  # it may be another name of somebody's file
        remove_tree(site.stage)
        into.work.mkdir(parents=True, exist_ok=True)
        for wheel in plan.install:
            if (near := index.sources.near(wheel.file or "-")) is not None:
                read_wheel_contents(near)  # what must not be unpacked uv need not read, either
        progress("resolve")
        pinned = choose_wheels(plan, target, index, uv, into.work / "compile")
        confirm(chosen_by_others(plan, pinned, index))
        wheels = tuple(pin.wheel for pin in pinned)
        with written_early(into.work):
            if pinned:
                _install(plan, pinned, index, uv, into, progress)
            if writes_in_place(target.installed):
                break_hardlinks(into.folder, site, wheels)
        own = stage_files(files, site.stage / "files")
        if companions:
            _unpack(companions, into, uv, homes)
        remove_tree(into.work)
        every = (*wheels, *(companion.wheel for companion in companions))
        return StagedWheels(every, read_staged_tree(into.folder, site, every), own)
    except BrokenPipeError as error:
        raise Error("apply-interrupted") from error
    except OSError as error:
        raise disk_error(error, into.work) from error


def _install(  # noqa: PLR0917
    plan: Plan,
    coming: Sequence[Pinned],
    index: Index,
    uv: Uv,
    into: Prefix,
    progress: Progress,
) -> None:
    """Have uv install `coming` from its cache, else from the network after all checks."""
    near = [pin for pin in coming if pin.url.startswith("file:")]
    known = {wheel.sha256 for wheel in plan.install}
    need = sum(read_wheel_contents(local_path(pin.url)).size for pin in near)
    _need(into.work, need)
    progress("install", engine=uv.name, count=len(coming))
    if install_cached(uv, coming, index, into, progress):
        return
    remove_tree(into.folder)
    if not index.sources.offline:
        far = [pin for pin in coming if pin not in near]
        unread = [pin for pin in far if pin.wheel.sha256 not in known]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            need += sum(pool.map(lambda pin: _unpacked_size(pin, index), unread))
        need += int(sum(pin.wheel.size for pin in far if pin not in unread) * _UNPACKED)
        for folder in {into.work, may_cache(uv.environ) or into.work}:
            _need(folder, need)
    install(uv, coming, index, into, progress)


def _unpacked_size(pin: Pinned, index: Index) -> int:
    """Return how many bytes a wheel on a server unpacks to, and refuse one that must not be.

    Its list of files is read, without the rest. Where a server gives no part of a file what came is
    looked at.
    """
    wheel = pin.wheel
    try:
        file = RemoteFile(index.read_part, pin.url)
        return read_contents(file, wheel.file, file.size).size  # type: ignore[arg-type]
    except Error as error:
        if error.code != "index-without-ranges":
            raise
    return int(wheel.size * _UNPACKED)


def stage_files(files: Sequence[FileChange], folder: Path) -> tuple[str, ...]:
    """Write the new files of a project into `folder`, each with the mode of the old one."""
    staged = []
    for at, file in enumerate(files):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / str(at)
        path.write_bytes(file.after)
        if file.before is not None:
            shutil.copymode(file.path, path)
            give_to_owner(path, file.path.stat())
        staged.append(str(path))
    return tuple(staged)


def _unpack(
    companions: Sequence[LocalWheel], into: Prefix, uv: Uv, homes: Mapping[Path, bytes]
) -> None:
    """Unpack `companions` into the prefix: they have modules and metadata alone, and a RECORD.

    Those that are files of the project, in `homes`, say so, as if its tool had installed them.

    What every start of Python runs is compiled here, for nobody may be able to write its bytecode
    later; all else is compiled when it is used.
    """
    root = into.folder / "companions"
    for companion in companions:
        with zipfile.ZipFile(io.BytesIO(companion.content)) as file:
            file.extractall(long_path(str(root)))
        for home, origin in homes.items():
            if home.name == companion.file:
                _write_origin(root, home, origin)
    if any(root.rglob("*.py")):  # a placeholder has none
        compile_modules(uv, root, into)


def _write_origin(root: Path, home: Path, content: bytes) -> None:
    """Note in a companion's metadata that it came from the file `home` of the project (PEP 610)."""
    info = root / info_of(home)
    (info / "direct_url.json").write_bytes(content)
    (info / UV_CACHE).write_text("{}", encoding="utf-8")  # see `note_times`
    packed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    with (info / "RECORD").open("a", encoding="utf-8", newline="") as record:
        record.write(f"{info.name}/direct_url.json,sha256={packed},{len(content)}\n")
        record.write(f"{info.name}/{UV_CACHE},,\n")


def info_of(wheel: Path) -> str:
    """Return the name of the dist-info folder of a wheel's file."""
    return f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"


def note_times(homes: Collection[Path], infos: Collection[str]) -> None:
    """Note the time of the files `homes`, which lie in their place, in the metadata in `infos`.

    uv would install them again where it is another one. It takes the time at which the file came
    there, so nobody knows it before. Source: `Timestamp::from_metadata` of uv's crate `uv-cache`.
    """
    for home in homes:
        about = home.stat()
        when = about.st_mtime_ns if sys.platform == "win32" else about.st_ctime_ns
        seconds, nanoseconds = divmod(when, 10**9)
        note = {"timestamp": {"secs_since_epoch": seconds, "nanos_since_epoch": nanoseconds}}
        for info in infos:
            if Path(info).name == info_of(home):
                Path(info, UV_CACHE).write_text(json.dumps(note), encoding="utf-8")


def _need(folder: Path, size: int) -> None:
    needed, free = size + _MARGIN, shutil.disk_usage(folder).free
    if free < needed:
        raise Error(
            "no-space",
            folder=str(folder),
            needed=f"{needed / 1e9:.1f} GB",
            free=f"{free / 1e9:.1f} GB",
        )


@contextlib.contextmanager
def written_early(folder: Path) -> Iterator[None]:
    """Have the filesystem of `folder` written once a second, while uv unpacks more.

    By itself Linux begins only when a tenth of the memory is waiting to be written, which on a
    large machine is more than is ever installed: all of that would be waited for before the change.
    That all is written is made sure later, by `sync_files`. Raises nothing of its own.
    """
    done = threading.Event()
    if sys.platform == "linux":
        threading.Thread(target=_write_each_second, args=(folder, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _write_each_second(folder: Path, done: threading.Event) -> None:
    """Source: https://man7.org/linux/man-pages/man2/syncfs.2.html."""
    with contextlib.suppress(ImportError, OSError, AttributeError):  # a Python without ctypes
        import ctypes  # noqa: PLC0415 - only who installs needs it

        syncfs = ctypes.CDLL(None).syncfs
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            while not done.wait(_SECONDS):
                syncfs(descriptor)
        finally:
            os.close(descriptor)
