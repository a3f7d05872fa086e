"""Unlocks: single changes that would allow a newer release, found by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from packaging.version import Version

from ..facts.model import CPU_BUILD, GPU_BUILD
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..plan.model import Rejected, Unlock
from ..plan.reasons import Named, Reason, reason
from ..versions import newest_first
from .candidate import Candidate
from .changed_situations import changed_situations
from .elsewhere import builds_elsewhere
from .findings_others import release_for_cudnn
from .situation import Situation, situation
from .torch_choice import TorchChoice, without_torch

_BLOCKING = {
    "consumer-other-cuda",
    "consumer-other-cudnn",
    "demand-conflict",
    "folder-owned",
    "folder-used",
    "library-pins-differ",
    "requirement-conflict",
}
_BY_THEIR_CUDA = {"consumer-other-cuda", "consumer-other-cudnn", "folder-owned", "folder-used"}
"""Of these, the reasons that another version of the package need not mend."""
_ALLOWED = {"consumer-other-cudnn", "library-pins-differ"}
"""Of these, the reasons for which `--allow conflicts` is named."""


class Gain(NamedTuple):
    """What has the provider in the newest release that works."""

    build: Named
    """onnxruntime-gpu, or a plugin."""
    latest: bool
    """Only `--ort latest` takes it."""


Newest = Callable[[Situation, str | None], Gain | None]
Torches = Callable[[Situation], Iterator[TorchChoice]]


def unlock(
    here: Situation,
    works: list[Candidate],
    rejected: Sequence[Rejected],
    newest: Newest,
    torches: Torches,
) -> tuple[Unlock, ...]:
    """Return every single change that would allow a newer release than any that works now.

    `newest` returns the gain above another release that works in a situation; `torches` yields the
    torch to take, the nearest first.
    """
    now = works[0].version if works else None
    rows = [
        *_without_blockers(here, rejected, now, newest),
        *_without_lines(here, rejected, now, newest),
    ]
    if any(why.code in _ALLOWED for row in rejected for why in row.reasons):
        rows += _with_conflicts(here, now, newest)
    for change, changed in changed_situations(here):
        gain = newest(changed, now)
        if gain is not None:
            rows.append(_unlocked(change, gain))
    fixed = here.torch is not None or here.options.torch != "keep"
    if fixed and newest(without_torch(here), now) is not None:
        rows = [*_other_torches(here, now, torches), *_distinct(rows)]
    else:
        rows = [*_distinct(rows)]
    return (*rows, *builds_elsewhere(here, now, rejected))


def _unlocked(change: Reason, gain: Gain) -> Unlock:
    return Unlock(change=change, gains=(gain.build,), latest=gain.latest)


def _without_blockers(
    here: Situation, rejected: Sequence[Rejected], now: str | None, newest: Newest
) -> Iterator[Unlock]:
    """Yield what each package that excludes newer releases holds back; else all of them together.

    Whether a version of it exists that does not is known to an index, so pip or uv is to be asked.
    """
    blockers = _blockers(rejected, now)
    found = False
    together = [tuple(blockers)] if len(blockers) > 1 else []
    for names in [*((name,) for name in blockers), *together]:
        others = tuple(row for row in here.facts.packages if row.name not in names)
        facts = here.facts._replace(packages=others)
        gain = newest(situation(facts, here.options, here.matrix), now)
        if gain is None or (found and len(names) > 1):
            continue
        found = True
        packages = [row for row in here.facts.packages if row.name in names]
        by = tuple(Named(row.name, row.version) for row in packages)
        change = reason("other-cuda", by=by)
        if all("consumer-other-cudnn" in blockers[name] for name in names):
            change = _other_cudnn(names, gain.build, here) or change
        if all(blockers[name] - _BY_THEIR_CUDA for name in names):
            wanted = [
                f"{build}=={gain.build.version}"
                for build in _builds_to_ask(here, names, gain.build)
            ]
            command = " ".join(["pip install --dry-run", *names, *wanted])
            change = reason("other-version", by=by, command=command)
        yield _unlocked(change, gain)


def _other_cudnn(names: Sequence[str], gain: Named, here: Situation) -> Reason | None:
    """Return the releases of `names` that need no older cuDNN than `gain` does, if all have one."""
    cudnns = {build.cudnn for build in here.matrix.builds if build.version == gain.version}
    users = [row for row in here.consumers if row.name in names]
    wishes = [release_for_cudnn(cudnns, row, here) for row in users]
    return reason("other-cudnn", wishes=", ".join(filter(None, wishes))) if all(wishes) else None


def _builds_to_ask(here: Situation, names: Sequence[str], gain: Named) -> Sequence[str]:
    """Return which of the two builds `names` require, for an index to hold against; else the gain.

    A package that requires onnxruntime has nothing against any onnxruntime-gpu.
    """
    required = [
        build
        for build in (CPU_BUILD, GPU_BUILD)
        if any(demand.distribution in names for demand in here.demanded(build))
    ]
    return required if required and gain.name == GPU_BUILD else [gain.name]


def _without_lines(
    here: Situation, rejected: Sequence[Rejected], now: str | None, newest: Newest
) -> Iterator[Unlock]:
    """Yield what each line of the user's requirements files holds back."""
    asked = {by for row in rejected for why in row.reasons for by in why.by}
    for line in here.options.requirements:
        if line not in asked:
            continue
        others = tuple(each for each in here.options.requirements if each != line)
        options = here.options._replace(requirements=others)
        gain = newest(situation(here.facts, options, here.matrix), now)
        if gain is not None:
            change = reason("other-requirement", file=line.file, requirement=line.text)
            yield _unlocked(change, gain)


def _with_conflicts(here: Situation, now: str | None, newest: Newest) -> Iterator[Unlock]:
    """Yield what goes where installed packages, which keep their say otherwise, have none."""
    options = here.options._replace(conflicts=True)
    gain = newest(situation(here.facts, options, here.matrix), now)
    if gain is not None:
        wish = "" if now is None else f"--ort {gain.build.version} "
        change = reason("allow-conflicts", flags=f"{wish}--allow conflicts")
        yield Unlock(change=change, gains=(gain.build,))


def _blockers(rejected: Sequence[Rejected], now: str | None) -> dict[str, set[str]]:
    """Return who excludes releases newer than `now`, and the codes of the reasons; torch apart."""
    found: dict[str, set[str]] = {}
    for row in rejected:
        if now is not None and newest_first(row.version) <= newest_first(now):
            continue
        for why in row.reasons:
            if why.code in _BLOCKING:
                for name in (by.name for by in why.by if isinstance(by, Named)):
                    found.setdefault(name, set()).add(why.code)
    return {name: found[name] for name in sorted(found.keys() - {TORCH, *DOMAIN_LIBRARIES})}


def _other_torches(here: Situation, now: str | None, torches: Torches) -> Iterator[Unlock]:
    """Yield what the nearest torch that fits would allow, and what a farther one would."""
    anything = "match" if here.torch is not None else ">=0"
    matching = here._replace(options=here.options._replace(torch=anything))
    for at, choice in enumerate(torches(matching)):
        torch = choice.torch.version
        nearest = not at and anything == "match"
        change = reason("match-torch") if nearest else reason("other-torch", torch=torch)
        if now is None or newest_first(choice.build.version) > newest_first(now):
            gains = Named(GPU_BUILD, choice.build.version), Named(TORCH, torch)
            yield Unlock(change=change, gains=gains)


def _distinct(rows: list[Unlock]) -> tuple[Unlock, ...]:
    """Return, of the changes of one kind, those that gain more than every smaller one."""
    kept: list[Unlock] = []
    best: dict[tuple[str, str], Version] = {}
    for row in rows:
        kind = row.change.code, row.gains[0].name
        gain = newest_first(row.gains[0].version)
        if kind not in best or gain > best[kind]:
            best[kind] = gain
            kept.append(row)
    return tuple(kept)
