"""What nobody needs after a change: NVIDIA's wheels that came along with what changes.

What the change itself orphans goes; what was needless before is reported, and stays. torch says
what it requires, the matrix what onnxruntime-gpu does; others may open any wheel of their CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..facts.model import Package
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..versions import major
from .candidate import Candidate
from .changes import Changes
from .choice import is_installed
from .consumers import UNDECLARED
from .environment import CameAlong, consequences, required_name
from .situation import Situation

_LIBRARIES = ("nvidia-", "cuda-")
"""How the names of what comes along with torch begin, and goes where it changes to another CUDA."""
_MAJOR = re.compile(r"-cu\d+$")
_UNNAMED = 13
"""The first CUDA whose wheels, but for cuDNN and a few, have no major in their names."""


def with_orphans(
    changes: Changes, best: Candidate, situation: Situation, planned: Situation
) -> Changes:
    """Return `changes` with what nobody needs after them; `planned` has the torch of the plan."""
    names = frozenset(_came_along(situation))
    along = CameAlong(
        names, frozenset(_used(situation)), frozenset(_used_after(best, changes, planned))
    )
    coming = [Package(name=wheel.name, version=wheel.version) for wheel in changes.install]
    if planned.torch != situation.torch:
        coming = [*coming, *_keeping_wheels(situation, planned)]
    found = consequences(situation.environment, changes.uninstall, coming, along)
    orphaned = [package for name in sorted(found.needless) if (package := situation.package(name))]
    going = tuple(
        package
        for package in orphaned
        if changes and not (package.requested or package.removal_blocker)
    )
    staying = situation.environment.changed(
        (*changes.uninstall, *(package.name for package in going)), coming
    )
    others = names & staying.installed.keys()
    needless = others - staying.needed(others, along.used_after)
    return changes._replace(
        uninstall=tuple(sorted({*changes.uninstall, *(package.name for package in going)})),
        orphaned=going,
        needless=tuple(
            package
            for name in sorted(needless)
            if (package := situation.package(name))
            and (package in orphaned or not package.requested)
        ),
    )


def _came_along(situation: Situation) -> Iterator[str]:
    """Yield the installed wheels that hold CUDA's libraries, and no program of NVIDIA's.

    Those that the matrix knows, and what torch requires of such a name, and that in its turn.
    """
    waiting = [TORCH, *DOMAIN_LIBRARIES, *situation.matrix.distributions]
    visited: set[str] = set()
    while waiting:
        name = waiting.pop()
        package = situation.package(name)
        if name in visited or package is None:
            continue
        visited.add(name)
        if name.startswith(_LIBRARIES) and not package.outside:
            yield name
        required = (required_name(text)[0] for text in package.requires)
        waiting += [each for each in required if each.startswith(_LIBRARIES)]


def _used(situation: Situation) -> Iterator[str]:
    """Yield what is used here by who does not require it: an onnxruntime-gpu, and others."""
    builds = (build for build in situation.matrix.builds if build.platform == situation.platform)
    installed = next((build for build in builds if is_installed(build, situation)), None)
    if installed is not None:
        yield from _of_cuda(situation, major(installed.cuda))
    yield from _used_undeclared(situation)


def _used_after(best: Candidate, changes: Changes, planned: Situation) -> Iterator[str]:
    yield from (wheel.name for wheel in changes.selection)
    yield from _of_cuda(planned, major(best.build.cuda))
    yield from _used_undeclared(planned)


def _used_undeclared(situation: Situation) -> Iterator[str]:
    """Yield what others that use CUDA open without requiring it: any wheel of their CUDA."""
    consumers = [consumer for consumer in situation.consumers if consumer.why.code in UNDECLARED]
    for cuda in {consumer.cuda for consumer in consumers if consumer.cuda}:
        yield from _of_cuda(situation, cuda)
    needs = {library for consumer in consumers for library in consumer.needs}
    for (_, library), name in situation.matrix.providers.items():
        if library in needs:
            yield name


def _of_cuda(situation: Situation, cuda: str) -> Iterable[str]:
    """Return the wheels for a CUDA major, those too that onnxruntime needs none of.

    From CUDA 13 on most have no major in their names: of which one they are is not known.
    """
    installed = [package.name for package in situation.facts.packages]
    plain = [name for name in installed if name.startswith("nvidia-") and not _MAJOR.search(name)]
    unnamed = plain if int(cuda) >= _UNNAMED else []
    return [*unnamed, *(name for name in installed if name.endswith(f"-cu{cuda}"))]


def _keeping_wheels(situation: Situation, planned: Situation) -> list[Package]:
    """Return the torch that comes, with what it will require as far as that is known.

    Of the same CUDA it requires what the one before did; which versions of it does not matter here.
    """
    before, after = situation.package(TORCH), planned.package(TORCH)
    if before is None or after is None or situation.torch is None or planned.torch is None:
        return []
    same = (
        situation.torch.cuda
        and planned.torch.cuda
        and (major(situation.torch.cuda) == major(planned.torch.cuda))
    )
    return [after._replace(requires=before.requires) if same else after]
