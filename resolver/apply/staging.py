"""Bring everything that will be installed into the environment's own filesystem, and look at it.

After this nothing of the network is needed any more, and it is known which files will come.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..engine.choose import Engine
from ..engine.common import StagedFile
from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..index.download import disk_error, download_all, file_digest
from ..index.pinning import pin_from_index, wheel_target_of
from ..plan.model import Plan
from ..plan.wheels import HERE, Wheel
from ..utils.progress import Progress
from .staging_torch import resolve_torch_closure
from .state_folder import Site
from .torch_requirements import incoming_torch
from .wheel_contents import WheelContents
from .wheel_reader import read_wheel_contents

_UNPACKED = 1.7
"""Unpacked size over wheel size, before the wheels can be looked into; nvidia's are at 1.3-1.7."""
_MARGIN = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedWheels:
    """Everything that will be installed."""

    staged: tuple[StagedFile, ...]
    contents: tuple[WheelContents, ...]
    """Of each of `staged`, in its order."""


def stage_wheels(
    plan: Plan,
    target: Target,
    *,
    index: Index,
    engine: Engine,
    progress: Progress,
    local: Mapping[str, bytes] | None = None,
) -> StagedWheels:
    """Stage what `plan` installs, what it requires besides, and `local` wheels by their file names.

    What an interrupted run brought is used, what belongs to no plan any more is removed. Raises
    Error `no-space`, `requirements-impossible`, those of `named_index.settled`,
    `torch_stage.closure` and `download.download_all`, and
    `wheel-escapes`, `wheel-odd`, `wheel-huge` or `wheel-broken` for a wheel that must not be
    unpacked. Nothing of the environment has changed then.
    """
    site = Site.of(target)
    folder = site.stage / "wheels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        install = tuple(
            pin_from_index(wheel, index, wheel_target_of(target)) for wheel in plan.install
        )
        _check_space(folder, install)
        progress("resolve")
        work = site.stage / "resolve"
        if incoming_torch(plan):
            found = resolve_torch_closure(
                plan,
                install,
                target,
                index=index,
                engine=engine,
                folder=folder,
                work=work,
                progress=progress,
            )
            pinned, more = found.pinned, found.wheels
        else:
            pinned, more = engine.resolve(plan.requires, target, index.sources, work), ()
        wheels = [*install, *more, *(one.wheel for one in pinned)]
        _clear(folder, {wheel.file for wheel in wheels})
        _check_space(folder, wheels)
        urls = {one.wheel.file: one.url for one in pinned}
        paths = download_all(index, wheels, folder, progress, urls)
        staged = [
            StagedFile(wheel=wheel, path=path) for wheel, path in zip(wheels, paths, strict=True)
        ]
        staged += [_bring(folder / name, content) for name, content in (local or {}).items()]
        inside = tuple(read_wheel_contents(one.path) for one in staged)
        _check_unpacked(folder, inside)
    except OSError as error:
        raise disk_error(error, folder) from error
    return StagedWheels(staged=tuple(staged), contents=inside)


def _bring(path: Path, content: bytes) -> StagedFile:
    """Write a wheel that was made here beside the others."""
    path.write_bytes(content)
    inside = read_wheel_contents(path)
    wheel = Wheel(
        name=inside.name,
        version=inside.version,
        index_url=HERE,
        file=path.name,
        size=len(content),
        sha256=file_digest(path),
    )
    return StagedFile(wheel=wheel, path=path)


def _clear(folder: Path, wanted: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.name.removesuffix(".part") not in wanted:
            entry.unlink()


def _check_space(folder: Path, wheels: Sequence[Wheel]) -> None:
    """Refuse before the download; moving aside is renaming and needs nothing."""
    here = sum(entry.stat().st_size for entry in folder.iterdir())
    total = sum(wheel.size for wheel in wheels)
    _need(folder, max(total - here, 0) + int(total * _UNPACKED))


def _check_unpacked(folder: Path, inside: Sequence[WheelContents]) -> None:
    _need(folder, sum(one.size for one in inside))


def _need(folder: Path, size: int) -> None:
    needed = size + _MARGIN
    free = shutil.disk_usage(os.fspath(folder)).free
    if free < needed:
        raise Error(
            "no-space",
            folder=str(folder),
            needed=f"{needed / 1e9:.1f} GB",
            free=f"{free / 1e9:.1f} GB",
        )
