"""Which wheels come: those of the plan, and what else is required, as uv chooses it.

Each distribution of the plan is taken from its one index, and has the hash of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..errors import Error
from ..facts.target import Target
from ..index.client import Index
from ..index.folder import local_path
from ..index.page import without_credentials
from ..index.pinning import wheel_target_of
from ..plan.model import Plan
from ..plan.wheels import PYPI, TORCH_FAMILY, Pinned, Wheel, first_of_each, index_of_torch
from ..uv.compile import compile_plan
from ..uv.program import Uv
from ..uv.project import Question, constraints, installed_versions
from .after_change import incoming_torch, movable_distributions


class ChosenWheel(NamedTuple):
    """A wheel whose file the plan does not name: an index or uv chose it for this machine.

    What arrives is checked against the hash that the index gave for it.
    """

    wheel: Wheel
    place: str
    """The index, without credentials, or the folder that it comes from."""


Confirm = Callable[[Sequence[ChosenWheel]], None]
"""Is given what was chosen, before anything is downloaded; may raise."""


def choose_wheels(
    plan: Plan, target: Target, index: Index, uv: Uv, folder: Path
) -> tuple[Pinned, ...]:
    """Return what to install, with the address of each file: the wheels of the plan come first.

    What is installed stays at its version. Only where a new torch requires another, and there is no
    other way, what it requires may move. Raises as `compile_plan`.
    """
    coming = {wheel.name for wheel in plan.install}
    movable = frozenset(coming.union(plan.uninstall))
    if incoming_torch(plan):
        movable |= movable_distributions(plan, target)
    fit = wheel_target_of(target)
    question = Question(
        wheels=plan.install,
        unread=TORCH_FAMILY,
        behind=index_of_torch(plan.install),
        requires=plan.requires,
        within=constraints(plan.requires, target, movable),
        python=("--python", target.executable),
        version=fit.python,
        tags=fit.tags,
        target=target,
    )
    try:
        pinned = compile_plan(uv, question, index, folder)
    except Error as error:
        if error.code != "requirements-impossible" or not incoming_torch(plan):
            raise
        installed = {
            name: version
            for name, version in installed_versions(target).items()
            if name not in movable
        }
        question = replace(question, within=(), preferred=installed)
        pinned = compile_plan(uv, question, index, folder)
    best = first_of_each(pinned)
    return tuple(index.sized(pin) if pin.wheel.name in coming else pin for pin in best)


def chosen_by_others(plan: Plan, pinned: Sequence[Pinned], index: Index) -> tuple[ChosenWheel, ...]:
    """Return what the plan does not name, and where it comes from."""
    known = {wheel.file for wheel in plan.install if wheel.sha256}
    return tuple(
        ChosenWheel(pin.wheel, _place(pin, index)) for pin in pinned if pin.wheel.file not in known
    )


def _place(pin: Pinned, index: Index) -> str:
    """Say where a wheel comes from; the address of its file may be on another server."""
    if pin.url.startswith("file:"):
        return str(local_path(pin.url).parent)
    url = pin.wheel.index_url
    return without_credentials(index.sources.index_url if url == PYPI else url)
