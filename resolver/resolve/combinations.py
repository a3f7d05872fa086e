"""Combinations of two and of three changes that would allow a release where no single one does.

Those are tried that answer to every reason against a release, the smallest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from ..matrix.model import Build
from ..plan.model import Rejected, Unlock
from ..plan.reasons import Named, Reason
from ..versions import newest_first
from .candidate import without_wheels
from .environment_rules import check_options
from .other_packages import blocking_names, codes_of, other_packages
from .rules import MACHINE_RULES, is_usable
from .situation import OF_TORCH, Situation
from .steps import Step, after, with_conflicts, with_other_torch, without_packages
from .torch_choice import search_torch, without_torch

MOST_STEPS = 3
"""How many changes together are shown."""
_TRIES = 40
"""How many combinations are tried at most: each is a few milliseconds of the rules' work."""
_KINDS: Mapping[str, tuple[str, ...]] = {
    "driver-too-old": ("driver",),
    "gpu-dropped": ("driver",),
    "no-driver": ("driver",),
    "ptx-needs-driver": ("driver",),
    "no-gpu": ("gpus",),
    "no-wheel-python": ("python",),
    "not-cpython": ("python",),
    "python-too-old": ("python",),
    "no-wheel-platform": ("platform",),
    "glibc-too-old": ("platform",),
    "library-glibc": ("platform",),
    "no-gpu-code": ("gpu",),
    "library-no-gpu-code": ("gpu", "driver"),
    "not-wished": ("--ort", "--cuda"),
}
"""By the code of a reason: the kinds of steps that may answer to it."""


class Judged(NamedTuple):
    """The releases of a situation, as the rules judged them."""

    newest: str | None
    """The newest that works."""
    rejected: Sequence[tuple[Build, Rejected]]
    """The newest first."""


def together(situation: Situation, judged: Judged, steps: Sequence[Step]) -> Iterator[Unlock]:
    """Yield the smallest combinations of steps that allow a release, each with its newest."""
    answers = _Answers(situation, steps)
    tries = [
        (len(combination), at, combination)
        for at, (build, rejection) in enumerate(judged.rejected)
        if judged.newest is None or newest_first(rejection.version) > newest_first(judged.newest)
        for combination in answers.to_all(build, rejection)
        if 1 < len(combination) <= MOST_STEPS
        # Where something works, what was wished for stays wished for.
        if judged.newest is None or not any(step.kind.startswith("--") for step in combination)
    ]
    found: dict[frozenset[str], int] = {}
    for size, at, combination in sorted(tries, key=lambda rejection: rejection[:2])[:_TRIES]:
        kinds = frozenset(step.kind for step in combination)
        if kinds in found or any(size > smallest for smallest in found.values()):
            continue
        build, rejection = judged.rejected[at]
        tried = after(situation, combination)
        works = is_usable(build, without_torch(tried) if "torch" in kinds else tried)
        if works and "torch" in kinds:
            works = search_torch(tried, [build], is_usable).choice is not None
        if works:
            found[kinds] = size
            gain = Named(rejection.package, rejection.version)
            yield Unlock(
                changes=tuple(_described_changes(combination, rejection, gain, situation)),
                gains=(gain,),
            )


class _Answers:
    """Which steps answer to which reasons."""

    def __init__(self, situation: Situation, steps: Sequence[Step]) -> None:
        """Take a situation, and what may be changed in it."""
        self._situation = situation
        self._steps = [(step, after(situation, [step])) for step in steps]
        self._found: dict[Reason, list[Step]] = {}

    def to_all(self, build: Build, rejection: Rejected) -> Iterator[tuple[Step, ...]]:
        """Yield the combinations of steps that answer to every reason against a release."""
        reasons = [why for why in rejection.reasons if not blocking_names([why])]
        needed = [self._to(why, build) for why in reasons]
        packages = [without_packages([name]) for name in blocking_names(rejection.environment)]
        for chosen in product(*needed):
            own = {step.change: step for step in chosen}.values()
            if len({step.kind for step in own}) == len(own):
                yield (*own, *packages)
                if len(packages) > 1:
                    yield (*own, with_conflicts())

    def _to(self, why: Reason, build: Build) -> list[Step]:
        """Return the smallest step that answers to a reason, and the largest of that kind."""
        if any(isinstance(by, Named) and by.name in OF_TORCH for by in why.by):
            return [with_other_torch()] if self._situation.torch is not None else []
        if why not in self._found:
            able = [
                step
                for step, tried in self._steps
                if step.kind.split()[0] in _KINDS.get(why.code, ())
                if why.code not in _codes_against(build, tried)
            ]
            self._found[why] = list(dict.fromkeys((*able[:1], *able[-1:])))
        return self._found[why]


def _codes_against(build: Build, situation: Situation) -> set[str]:
    """Return the codes of the reasons against a build, but for those of its wheels."""
    candidate = without_wheels(build, situation)
    rules = (*MACHINE_RULES, check_options)
    return {why.code for rule in rules for why in rule(candidate, situation)}


def _described_changes(
    combination: Sequence[Step], rejection: Rejected, gain: Named, situation: Situation
) -> Iterator[Reason]:
    """Yield the changes of a combination; its packages are one of them."""
    names = [name for step in combination for name in step.packages]
    yield from (step.change for step in combination if not step.packages)
    if names:
        codes = {name: codes_of(name, [rejection]) for name in names}
        yield from other_packages(names, codes, gain, situation)
