"""Bring a torch, and find out what it requires besides the plan.

Each package is looked for on one index alone: torch and its companions where the plan says,
what they require on the default index, and only what that does not have on torch's. A higher
version elsewhere is nobody's reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from ..engine.choose import Engine
from ..facts.target import Target
from ..index.client import Index
from ..index.download import download_all
from ..index.pinning import files_in_folder, index_has, newest_from_index, wheel_target_of
from ..index.wheel_choice import WheelTarget, find_newest
from ..plan.model import Plan
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.progress import Progress
from .torch_requirements import (
    FAMILY,
    TorchRequirement,
    distributions_afterwards,
    movable_distributions,
    torch_requirements,
)
from .wheel_contents import WheelContents
from .wheel_reader import read_wheel_contents


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchClosure:
    """What comes with a torch."""

    wheels: tuple[Wheel, ...]
    """From torch's own index, though the plan does not have them."""
    pinned: tuple[Pinned, ...]
    """What an engine chose on the default index: the plan's ordinary requirements among them."""


def resolve_torch_closure(
    plan: Plan,
    install: Sequence[Wheel],
    target: Target,
    *,
    index: Index,
    engine: Engine,
    folder: Path,
    work: Path,
    progress: Progress,
) -> TorchClosure:
    """Bring torch and its companions of the wheels `install` into `folder`, and what they require.

    `install` is what `plan` installs, each wheel settled; `work` is for files on the way. Raises
    Error `torch-contradicts-plan`, `requirements-impossible`, and those of `named_index.from_index`
    and `download_all`.
    """
    coming: dict[Wheel, WheelContents | None] = dict.fromkeys(install)
    fit = wheel_target_of(target)
    more: list[Wheel] = []
    fresh = [wheel for wheel in install if wheel.name in FAMILY]
    while True:
        paths = download_all(index, fresh, folder, progress)
        coming |= {
            wheel: read_wheel_contents(path) for wheel, path in zip(fresh, paths, strict=True)
        }
        progress("resolve")
        then = distributions_afterwards(plan, target, coming)
        known = [wheel.name for wheel, inside in coming.items() if inside is not None]
        wanted = torch_requirements(plan, then, known)
        fresh = [found for need in wanted if (found := _elsewhere(need, coming, index, fit))]
        if not fresh:
            break
        more += fresh
    requires = [*plan.requires, *(str(need.requirement) for need in wanted)]
    sources = replace(index.sources, alone=True)
    pinned = engine.resolve(requires, then, sources, work, movable_distributions(plan, target))
    return TorchClosure(wheels=tuple(more), pinned=pinned)


def _elsewhere(
    need: TorchRequirement,
    coming: Mapping[Wheel, WheelContents | None],
    index: Index,
    fit: WheelTarget,
) -> Wheel | None:
    """Return the wheel for `need` from the index of who needs it, where no other has it."""
    by = next(wheel for wheel in coming if wheel.name == need.by)
    if by.index_url == PYPI or index.sources.offline:
        return None
    name, specifier = canonicalize_name(need.requirement.name), need.requirement.specifier
    folder = index.sources.find_links
    if (
        folder is not None
        and find_newest(files_in_folder(folder), name, specifier, fit) is not None
    ):
        return None
    if index_has(name, specifier, PYPI, index, fit):
        return None
    return newest_from_index(name, specifier, by.index_url, index, fit)
