"""Stages the wheels to install: downloads them to the environment's filesystem and checks them.

After staging no network is needed, and it is known which files will be written.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from ..engine.choose import Engine
from ..engine.common import StagedFile
from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..index.download import disk_error, download_all, file_digest
from ..index.pinning import (
    files_in_folder,
    index_has,
    newest_from_index,
    pin_from_index,
    wheel_target_of,
)
from ..index.wheel_choice import WheelTarget, find_newest
from ..plan.model import Plan
from ..plan.wheels import HERE, PYPI, Pinned, Wheel
from ..utils.progress import Progress
from .state_folder import Site
from .torch_requirements import (
    FAMILY,
    TorchRequirement,
    distributions_afterwards,
    incoming_torch,
    movable_distributions,
    torch_requirements,
)
from .wheel_contents import WheelContents
from .wheel_reader import read_wheel_contents

_UNPACKED = 1.7
"""Unpacked size over wheel size, assumed until the wheels are here; NVIDIA's have 1.3 to 1.7."""
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
    """Stage what `plan` installs, what that requires besides, and `local` wheels by file name.

    Downloads of an interrupted run are used; files of other plans are removed. Raises Error
    `no-space`, `requirements-impossible`, `torch-contradicts-plan`, those of `pin_from_index`,
    `newest_from_index` and `download_all`, and `wheel-escapes`, `wheel-odd`, `wheel-huge` or
    `wheel-broken` for a wheel that must not be unpacked. The environment is unchanged then.
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
            pinned = _resolve_torch_closure(
                plan, wheels, target, index, engine, folder, work, progress
            )
        else:
            pinned = engine.resolve(plan.requires, target, index.sources, work)
        _name_chosen(pinned, progress)
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


def _name_chosen(pinned: Sequence[Pinned], progress: Progress) -> None:
    """Say which wheels an engine chose, and from where: they are no part of the plan."""
    for pin in pinned:
        parts = urlsplit(pin.url)
        server = f"{parts.scheme}://{parts.hostname}"
        progress(
            "requirement",
            name=pin.wheel.name,
            version=pin.wheel.version,
            place=server if parts.hostname else parts.path.rpartition("/")[0],
            sha256=pin.wheel.sha256,
        )


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


def _resolve_torch_closure(  # noqa: PLR0917
    plan: Plan,
    wheels: list[Wheel],
    target: Target,
    index: Index,
    engine: Engine,
    folder: Path,
    work: Path,
    progress: Progress,
) -> tuple[Pinned, ...]:
    """Download torch and its companions, and resolve what the plan and they require.

    Each distribution is taken from one index only: torch and its companions from the index in the
    plan, what they require from the default index, and what that does not have from torch's, which
    is appended to `wheels`. A newer version on another index is never chosen.
    """
    contents: dict[Wheel, WheelContents | None] = dict.fromkeys(wheels)
    to_read = [wheel for wheel in wheels if wheel.name in FAMILY]
    while True:
        paths = download_all(index, to_read, folder, progress)
        contents |= {
            wheel: read_wheel_contents(path) for wheel, path in zip(to_read, paths, strict=True)
        }
        progress("resolve")
        then = distributions_afterwards(plan, target, contents)
        names = [wheel.name for wheel, inside in contents.items() if inside is not None]
        needs = torch_requirements(plan, then, names)
        fit = wheel_target_of(target)
        to_read = [wheel for need in needs if (wheel := _from_torch(need, wheels, index, fit))]
        if not to_read:
            break
        wheels += to_read
    requires = [*plan.requires, *(str(need.requirement) for need in needs)]
    sources = replace(index.sources, alone=True)
    return engine.resolve(requires, then, sources, work, movable_distributions(plan, target))


def _from_torch(
    need: TorchRequirement, wheels: Sequence[Wheel], index: Index, fit: WheelTarget
) -> Wheel | None:
    """Return the wheel for `need` from torch's index, where no other has it."""
    by = next(wheel for wheel in wheels if wheel.name == need.by)
    if by.index_url == PYPI or index.sources.offline:
        return None
    name, specifier = canonicalize_name(need.requirement.name), need.requirement.specifier
    folder = index.sources.find_links
    if folder is not None and find_newest(files_in_folder(folder), name, specifier, fit):
        return None
    if index_has(name, specifier, PYPI, index, fit):
        return None
    return newest_from_index(name, specifier, by.index_url, index, fit)
