"""Unlocks: what would allow a newer release, found by the same rules with something changed.

Single changes first; where none of them gains anything, combinations of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from packaging.version import Version

from ..facts.model import GPU_BUILD
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..plan.model import Rejected, Unlock
from ..plan.reasons import Named, reason
from ..versions import newest_first
from .choice import Gain, newest_that_works, torches_to_try
from .combinations import Judged, together
from .elsewhere import builds_elsewhere
from .other_packages import blocking_names, codes_of, other_packages
from .situation import Situation
from .steps import (
    Step,
    after,
    steps_of_machine,
    with_conflicts,
    without_line,
    without_packages,
)
from .torch_choice import without_torch

_ALLOWED = {"consumer-other-cudnn", "library-pins-differ"}
"""The reasons for which `--allow conflicts` is named where some release works."""
Newest = Callable[[Situation, str | None], Gain | None]
"""Returns what works in a situation, above another release."""


def unlock(situation: Situation, judged: Judged, matrix: Matrix) -> tuple[Unlock, ...]:
    """Return what would allow a newer release than any that works now.

    `matrix` is the one without the builds of plugins.
    """

    def newest(situation: Situation, above: str | None) -> Gain | None:
        return newest_that_works(situation, above, matrix)

    now = judged.newest
    rejected = [rejection for _, rejection in judged.rejected]
    unlocks = [
        *_without_blockers(situation, rejected, now, newest),
        *_without_lines(situation, rejected, now, newest),
    ]
    if any(why.code in _ALLOWED for rejection in rejected for why in rejection.reasons):
        unlocks += _with_conflicts(situation, now, newest)
    steps = [*steps_of_machine(situation)]
    unlocks += _singly(situation, steps, now, newest)
    torch: tuple[Unlock, ...] = ()
    fixed = situation.torch is not None or situation.options.torch != "keep"
    if fixed and newest(without_torch(situation), now) is not None:
        torch = tuple(_other_torches(situation, now))
    if not (unlocks or torch):
        unlocks += together(situation, judged, steps)
    return (*torch, *_distinct(unlocks), *builds_elsewhere(situation, now, rejected))


def _singly(
    situation: Situation, steps: Sequence[Step], now: str | None, newest: Newest
) -> Iterator[Unlock]:
    for step in steps:
        gain = newest(after(situation, [step]), now)
        if gain is not None:
            yield Unlock(changes=(step.change,), gains=(gain.build,), latest=gain.latest)


def _without_blockers(
    situation: Situation, rejected: Sequence[Rejected], now: str | None, newest: Newest
) -> Iterator[Unlock]:
    """Yield what each package that excludes newer releases holds back; else all of them together.

    Whether a version of it exists that does not is known to an index, so pip or uv is to be asked.
    """
    newer = [
        rejection
        for rejection in rejected
        if now is None or newest_first(rejection.version) > newest_first(now)
    ]
    names = sorted({name for rejection in newer for name in blocking_names(rejection.environment)})
    found = False
    together = [tuple(names)] if len(names) > 1 else []
    for each in [*((name,) for name in names), *together]:
        gain = newest(after(situation, [without_packages(each)]), now)
        if gain is None or (found and len(each) > 1):
            continue
        found = True
        codes = {name: codes_of(name, newer) for name in each}
        changes = tuple(other_packages(each, codes, gain.build, situation))
        yield Unlock(changes=changes, gains=(gain.build,), latest=gain.latest)


def _without_lines(
    situation: Situation, rejected: Sequence[Rejected], now: str | None, newest: Newest
) -> Iterator[Unlock]:
    """Yield what each line of the user's requirements files holds back."""
    asked = {by for rejection in rejected for why in rejection.reasons for by in why.by}
    lines = [without_line(line) for line in situation.options.requirements if line in asked]
    yield from _singly(situation, lines, now, newest)


def _with_conflicts(situation: Situation, now: str | None, newest: Newest) -> Iterator[Unlock]:
    """Yield what goes where installed packages, which keep their say otherwise, have none."""
    gain = newest(after(situation, [with_conflicts()]), now)
    if gain is not None:
        wish = "" if now is None else f"--ort {gain.build.version} "
        change = reason("allow-conflicts", flags=f"{wish}--allow conflicts")
        yield Unlock(changes=(change,), gains=(gain.build,))


def _other_torches(situation: Situation, now: str | None) -> Iterator[Unlock]:
    """Yield what the nearest torch that fits would allow, and what a farther one would."""
    anything = "match" if situation.torch is not None else ">=0"
    matching = situation._replace(options=situation.options._replace(torch=anything))
    for at, choice in enumerate(torches_to_try(matching)):
        torch = choice.torch.version
        nearest = not at and anything == "match"
        change = reason("match-torch") if nearest else reason("other-torch", torch=torch)
        if now is None or newest_first(choice.build.version) > newest_first(now):
            gains = Named(GPU_BUILD, choice.build.version), Named(TORCH, torch)
            yield Unlock(changes=(change,), gains=gains)


def _distinct(unlocks: list[Unlock]) -> tuple[Unlock, ...]:
    """Return, of the changes of one kind, those that gain more than every smaller one."""
    kept: list[Unlock] = []
    best: dict[tuple[str, str], Version] = {}
    for unlocked in unlocks:
        kind = "+".join(change.code for change in unlocked.changes), unlocked.gains[0].name
        gain = newest_first(unlocked.gains[0].version)
        if kind not in best or gain > best[kind]:
            best[kind] = gain
            kept.append(unlocked)
    return tuple(kept)
