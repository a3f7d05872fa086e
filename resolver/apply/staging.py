"""Stages the wheels to install: downloads them to the environment's filesystem and checks them.

After staging no network is needed, and it is known which files will be written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..engine.choose import Engine
from ..engine.common import StagedFile
from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..index.download import disk_error, download_all, file_digest
from ..index.folder import local_path
from ..index.page import without_credentials
from ..index.pinning import pin_from_index, wheel_target_of
from ..plan.model import Plan
from ..plan.wheels import HERE, PYPI, Pinned, Wheel
from ..utils.progress import Progress
from .state_folder import Site
from .torch_closure import resolve_torch_closure
from .torch_requirements import incoming_torch
from .wheel_contents import WheelContents
from .wheel_reader import read_wheel_contents

_UNPACKED = 1.7
"""Unpacked size over wheel size, assumed until the wheels are here; NVIDIA's have 1.3 to 1.7."""
_MARGIN = 64 << 20


class ChosenWheel(NamedTuple):
    """A wheel whose file the plan does not name: an index or an engine chose it for this machine.

    What arrives is checked against the hash that the index gave for it.
    """

    wheel: Wheel
    place: str
    """The index, without credentials, or the folder that it comes from."""


Confirm = Callable[[Sequence[ChosenWheel]], None]
"""Is given what was chosen, before anything is downloaded; may raise."""


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
    confirm: Confirm,
    local: Mapping[str, bytes] | None = None,
) -> StagedWheels:
    """Stage what `plan` installs, what that requires besides, and `local` wheels by file name.

    `confirm` is asked once, before the download. Downloads of an interrupted run are used; files of
    other plans are removed. Raises Error `no-space`, `requirements-impossible`,
    `torch-contradicts-plan`, those of `pin_from_index`, `resolve_torch_closure`, `confirm` and
    `download_all`, and `wheel-escapes`, `wheel-odd`, `wheel-huge` or `wheel-broken` for a wheel
    that must not be unpacked. The environment is unchanged then.
    """
    site = Site.of(target)
    folder = site.stage / "wheels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wheel_target = wheel_target_of(target)
        wheels = [pin_from_index(wheel, index, wheel_target) for wheel in plan.install]
        _check_download_space(folder, wheels)
        progress("resolve")
        work = site.stage / "resolve"
        if incoming_torch(plan):
            pinned = resolve_torch_closure(
                plan, wheels, target, index, engine, folder, work, progress
            )
        else:
            pinned = engine.resolve(plan.requires, target, index.sources, work)
        known = {wheel for wheel in plan.install if wheel.sha256}
        chosen = [Pinned(wheel=wheel, url="") for wheel in wheels if wheel not in known]
        confirm([_chosen(pin, index) for pin in (*chosen, *pinned)])
        wheels += [pin.wheel for pin in pinned]
        names = {wheel.file for wheel in wheels}
        for entry in folder.iterdir():
            if entry.name.removesuffix(".part") not in names:
                entry.unlink()
        _check_download_space(folder, wheels)
        urls = {pin.wheel.file: pin.url for pin in pinned}
        paths = download_all(index, wheels, folder, progress, urls)
        staged = [
            StagedFile(wheel=wheel, path=path) for wheel, path in zip(wheels, paths, strict=True)
        ]
        staged += [_stage_local(folder / name, data) for name, data in (local or {}).items()]
        contents = tuple(read_wheel_contents(file.path) for file in staged)
        _need(folder, sum(wheel.size for wheel in contents))
    except OSError as error:
        raise disk_error(error, folder) from error
    return StagedWheels(staged=tuple(staged), contents=contents)


def _chosen(pin: Pinned, index: Index) -> ChosenWheel:
    """Say where a wheel comes from; the address of its file may be on another server."""
    wheel, near = pin.wheel, index.sources.near(pin.wheel.file)
    if near is not None or pin.url.startswith("file:"):
        return ChosenWheel(wheel, str((near or local_path(pin.url)).parent))
    base = index.sources.index_url if wheel.index_url == PYPI else wheel.index_url
    return ChosenWheel(wheel, without_credentials(base))


def _stage_local(path: Path, data: bytes) -> StagedFile:
    path.write_bytes(data)
    contents = read_wheel_contents(path)
    wheel = Wheel(
        name=contents.name,
        version=contents.version,
        index_url=HERE,
        file=path.name,
        size=len(data),
        sha256=file_digest(path),
    )
    return StagedFile(wheel=wheel, path=path)


def _check_download_space(folder: Path, wheels: Sequence[Wheel]) -> None:
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
