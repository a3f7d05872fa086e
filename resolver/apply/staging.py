"""Stages the wheels to install: downloads them to the environment's filesystem and checks them.

After staging no network is needed, and it is known which files will be written.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..companions.build import LocalWheel
from ..engine.choose import Engine
from ..engine.common import Prefix, StagedFile
from ..engine.guard import wait_for_engine
from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..index.config import IndexConfig
from ..index.download import download_all
from ..plan.model import Plan
from ..plan.wheels import PYPI, Wheel
from ..utils.files import disk_error
from ..utils.progress import Progress
from .chosen_wheels import Confirm, choose_wheels
from .hashed_files import unchanged_files
from .kept_provider import install_lean, is_layered, leave_in_place
from .staged_tree import (
    StagedTree,
    long_path,
    own_shared_files,
    read_staged_tree,
    spoiled_wheels,
    writes_in_place,
)
from .state_folder import Site, remove_tree
from .wheel_contents import read_wheel_contents

_UNPACKED = 1.7
"""Unpacked size over wheel size, assumed until the wheels are here; NVIDIA's have 1.3 to 1.7."""
_MARGIN = 64 << 20
_SECONDS = 1.0


class StagedWheels(NamedTuple):
    """Everything that will be installed, unpacked."""

    wheels: tuple[Wheel, ...]
    tree: StagedTree
    """Of these wheels, in their order."""


def stage_wheels(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    engine: Engine,
    progress: Progress,
    confirm: Confirm,
    companions: Sequence[LocalWheel] = (),
) -> StagedWheels:
    """Stage what `plan` installs, what that requires besides, and `companions`.

    `confirm` is asked once, before the download. uv brings what it can through its own cache; the
    rest is downloaded here, and the downloads of an interrupted run are used. Raises Error
    `no-space`, `requirements-impossible`, `torch-contradicts-plan`, `install-failed`, those of
    `pin_from_index`, `resolve_torch_closure`, `confirm`, `download_all` and `read_staged_tree`, and
    `wheel-escapes`, `wheel-odd`, `wheel-huge` or `wheel-broken` for a wheel that must not be
    unpacked. The environment is unchanged then.
    """
    site = Site.of(target)
    folder = site.stage / "wheels"
    into = Prefix(site.stage / "tree", site.stage / "engine", site.engine_lock)
    try:
        wait_for_engine(into.lock)  # of a run that was killed
        into.lock.unlink(missing_ok=True)  # it may be another name of somebody's file
        remove_tree(into.folder)
        folder.mkdir(parents=True, exist_ok=True)
        progress("resolve")
        wheels, urls = choose_wheels(plan, target, index, engine, into.work, progress, confirm)
        layered = is_layered(site.platlib)
        with written_early(folder):
            fetched = _fetch(wheels, target, index.sources, into, engine, progress, layered)
            if writes_in_place(target.installed):
                own_shared_files(into.folder, site, fetched)
        to_download = [wheel for wheel in wheels if wheel not in fetched]
        _check_space(folder, to_download)
        paths = download_all(index, to_download, folder, progress, urls)
        pairs = zip(to_download, paths, strict=True)
        staged = [StagedFile(wheel=wheel, path=path) for wheel, path in pairs]
        _need(folder, sum(read_wheel_contents(file.path).size for file in staged))
        present: frozenset[str] = frozenset()
        if staged:
            progress("install", engine=engine.name, count=len(staged))
            with written_early(folder):
                present = install_lean(staged, target, site, into, engine, layered)
        if companions:
            _unpack(companions, target, into, engine)
        remove_tree(into.work)
        every = (*fetched, *to_download, *(companion.wheel for companion in companions))
        tree = read_staged_tree(into.folder, site, every)
        return StagedWheels(every, leave_in_place(tree, present) if layered else tree)
    except BaseException as error:
        remove_tree(into.folder)  # gigabytes that nobody goes on with
        if isinstance(error, BrokenPipeError):
            raise Error("apply-interrupted") from error
        if isinstance(error, OSError):
            raise disk_error(error, folder) from error
        raise


def _unpack(companions: Sequence[LocalWheel], target: Target, into: Prefix, engine: Engine) -> None:
    """Unpack `companions` into the prefix: they have modules and metadata alone, and a RECORD.

    What every start of Python runs is compiled here, for nobody may be able to write its bytecode
    later; all else is compiled when it is used.
    """
    root = into.folder / "companions"
    for companion in companions:
        with zipfile.ZipFile(io.BytesIO(companion.content)) as file:
            file.extractall(long_path(str(root)))
    if any(root.rglob("*.py")):  # a stand-in has none
        engine.compile_modules(root, target, into)


def _fetch(  # noqa: PLR0917
    wheels: Sequence[Wheel],
    target: Target,
    sources: IndexConfig,
    into: Prefix,
    engine: Engine,
    progress: Progress,
    layered: bool,  # noqa: FBT001
) -> tuple[Wheel, ...]:
    """Return those of `wheels` that the engine has brought: from its cache, else from the network.

    What somebody has changed in its cache does not count.
    """
    unchanged = unchanged_files(sources.kept)  # until the engine makes the next link
    begun = {path.name.removesuffix(".part") for path in (into.folder.parent / "wheels").iterdir()}
    asked = tuple(
        wheel
        for wheel in wheels
        if wheel.sha256 and not (wheel.file in begun or sources.near(wheel.file))
        if (sources.index_url if wheel.index_url == PYPI else wheel.index_url).startswith("http")
    )
    cached = replace(sources, offline=True)
    brought = _bring(asked, target, sources, into, engine, progress)
    site = Site.of(target)
    spoiled = spoiled_wheels(into.folder, site, brought, unchanged, provider_stays=layered)
    if not spoiled:
        return brought
    progress("cache-spoiled", names=", ".join(wheel.name for wheel in spoiled))
    remove_tree(into.folder)
    right = tuple(wheel for wheel in brought if wheel not in spoiled)
    return right if right and engine.fetch(right, target, cached, into, progress) else ()


def _bring(  # noqa: PLR0917
    asked: tuple[Wheel, ...],
    target: Target,
    sources: IndexConfig,
    into: Prefix,
    engine: Engine,
    progress: Progress,
) -> tuple[Wheel, ...]:
    """Return those of `asked` that the engine has installed into the prefix."""
    cached = replace(sources, offline=True)
    if not asked or engine.fetch(asked, target, cached, into, progress):
        return asked
    remove_tree(into.folder)
    if not sources.offline:
        _need(into.folder.parent, int(sum(wheel.size for wheel in asked) * _UNPACKED))
        if engine.fetch(asked, target, sources, into, progress):
            return asked
        remove_tree(into.folder)
    # What uv has brought to its cache before it failed is taken from there.
    return tuple(row for row in asked if engine.fetch([row], target, cached, into, progress))


def _check_space(folder: Path, wheels: Sequence[Wheel]) -> None:
    """Refuse before the download; setting files aside is renaming and needs no space."""
    present = sum(entry.stat().st_size for entry in folder.iterdir())
    total = sum(wheel.size for wheel in wheels)
    _need(folder, max(total - present, 0) + int(total * _UNPACKED))


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
    """Have the filesystem of `folder` written once a second, while an engine unpacks more.

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
