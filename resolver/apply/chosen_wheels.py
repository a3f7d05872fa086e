"""Which wheels come besides those that the plan names: an index or an engine chooses them.

Each distribution is taken from one index only. What torch requires stands in its wheel alone, whose
metadata are read without the rest of it: nobody has agreed to the download yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..engine.choose import Engine
from ..errors import Error
from ..evidence.metadata import all_requirements
from ..evidence.ranges import open_zip, read_member
from ..evidence.wheels import EvidenceError
from ..facts.target import Target
from ..index.client import Index
from ..index.download import download_all
from ..index.folder import local_path
from ..index.page import without_credentials
from ..index.pinning import (
    files_in_folder,
    index_has,
    newest_from_index,
    pin_from_index,
    wheel_target_of,
)
from ..index.wheel_choice import WheelTarget, find_newest
from ..plan.model import Plan
from ..plan.wheels import PYPI, Pinned, Wheel
from ..resolve.environment import UnmetRequirement
from ..utils.progress import Progress
from .after_change import (
    FAMILY,
    distributions_afterwards,
    incoming_torch,
    movable_distributions,
    torch_requirements,
)
from .wheel_contents import read_wheel_contents

_MOST = 1 << 22
"""Bytes of metadata that are read without the wheel, at most."""


class ChosenWheel(NamedTuple):
    """A wheel whose file the plan does not name: an index or an engine chose it for this machine.

    What arrives is checked against the hash that the index gave for it.
    """

    wheel: Wheel
    place: str
    """The index, without credentials, or the folder that it comes from."""


Confirm = Callable[[Sequence[ChosenWheel]], None]
"""Is given what was chosen, before anything is downloaded; may raise."""


def choose_wheels(  # noqa: PLR0917
    plan: Plan,
    target: Target,
    index: Index,
    engine: Engine,
    work: Path,
    progress: Progress,
    confirm: Confirm,
) -> tuple[list[Wheel], dict[str, str]]:
    """Return what to install, and the addresses that are known, by file name.

    Files of other plans are removed.
    """
    folder, fits = work.parent / "wheels", wheel_target_of(target)
    wheels = [pin_from_index(wheel, index, fits) for wheel in plan.install]
    if incoming_torch(plan):
        pinned = resolve_torch_closure(plan, wheels, target, index, engine, folder, work, progress)
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
    return wheels, {pin.wheel.file: pin.url for pin in pinned}


def _chosen(pin: Pinned, index: Index) -> ChosenWheel:
    """Say where a wheel comes from; the address of its file may be on another server."""
    wheel, near = pin.wheel, index.sources.near(pin.wheel.file)
    if near is not None or pin.url.startswith("file:"):
        return ChosenWheel(wheel, str((near or local_path(pin.url)).parent))
    base = index.sources.index_url if wheel.index_url == PYPI else wheel.index_url
    return ChosenWheel(wheel, without_credentials(base))


def resolve_torch_closure(  # noqa: PLR0917
    plan: Plan,
    wheels: list[Wheel],
    target: Target,
    index: Index,
    engine: Engine,
    folder: Path,
    work: Path,
    progress: Progress,
) -> tuple[Pinned, ...]:
    """Read what torch and its domain libraries require, resolve that and what the plan requires.

    They are from the index in the plan, what they require is from the default index, and what that
    does not have from torch's, which is appended to `wheels`. A newer version on another index is
    never chosen. Where an index gives no part of a file, the whole wheel is downloaded to `folder`.
    Raises Error `torch-contradicts-plan`, `requirements-impossible`, and those of
    `newest_from_index` and `download_all`.
    """
    known: dict[Wheel, tuple[str, ...] | None] = dict.fromkeys(wheels)
    to_read = [wheel for wheel in wheels if wheel.name in FAMILY]
    while True:
        known |= {wheel: _requires(wheel, index, folder, progress) for wheel in to_read}
        then = distributions_afterwards(plan, target, known)
        names = [wheel.name for wheel in known]
        needs = torch_requirements(plan, then, names)
        fit = wheel_target_of(target)
        to_read = [wheel for need in needs if (wheel := _from_torch(need, wheels, index, fit))]
        if not to_read:
            break
        wheels += to_read
    requires = [*plan.requires, *(str(need.requirement) for need in needs)]
    movable = movable_distributions(plan, target)
    return engine.resolve(requires, then, index.sources, work, movable)


def _requires(wheel: Wheel, index: Index, folder: Path, progress: Progress) -> tuple[str, ...]:
    """Return the `Requires-Dist` lines of `wheel`; what arrives later is held against its hash."""
    here = (folder / wheel.file).is_file() or index.sources.near(wheel.file) is not None
    if not here and not index.sources.offline:
        url = index.find(wheel)
        if not url.startswith("file:"):
            with contextlib.suppress(EvidenceError):  # no wheel: the download tells
                return _remote_requires(url, index)
    (path,) = download_all(index, [wheel], folder, progress)
    return read_wheel_contents(path).requires


def _remote_requires(url: str, index: Index) -> tuple[str, ...]:
    """Raise EvidenceError where the metadata cannot be read in parts."""
    try:
        archive, _ = open_zip(index.read_part, url)
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(names) != 1 or archive.getinfo(names[0]).file_size > _MOST:
            raise EvidenceError(url)
        text = read_member(archive, names[0])
    except Error as error:
        if error.code != "index-without-ranges":
            raise
        raise EvidenceError(url) from error
    return tuple(all_requirements(text.decode("utf-8", errors="replace")))


def _from_torch(
    need: UnmetRequirement, wheels: Sequence[Wheel], index: Index, fit: WheelTarget
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
