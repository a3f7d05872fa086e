"""From the GPU code in a library to the GPUs it supports.

A library is compiled from many source files, and not every one for the same GPUs: a few kernels
exist for one GPU only, and a file may be left out for another by mistake. What counts is whether
the files that every GPU needs have code for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENOUGH = 0.95
"""Share of the general fatbins that must have code for a GPU. All would be too strict for cuBLAS,
which has a few kernels for old GPUs only; libraries that really lack a GPU miss 15 % and more."""
MOST = 0.5
"""Share from which on a GPU counts as partly supported."""
COMMON = 0.1
"""Share of all fatbins that the general ones must make up; and, in libraries where they do not
because each fatbin holds one target (cuFFT), the share of the most frequent target that another
must reach: there nothing shows which fatbins belong together."""
_TARGET = re.compile(r"(ptx)?(\d+)\.(\d)([af]?)")


class GpuTarget(NamedTuple):
    """One target of compilation: `8.6`, `9.0a`, `12.0f`, `ptx9.0`."""

    text: str
    ptx: bool
    major: int
    minor: int
    suffix: str

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability it is made for."""
        return self.major, self.minor

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Say whether code for this target runs there.

        Machine code runs on the same major and the same or a later minor; PTX on anything later.
        With the suffix `a` either runs on exactly its own capability, with `f` within its major.
        """
        if self.suffix == "a":
            return capability == self.capability
        if self.ptx and not self.suffix:
            return capability >= self.capability
        return capability[0] == self.major and capability >= self.capability


def parse(text: str) -> GpuTarget:
    """Return the target that `text` (`9.0a`, `ptx9.0`) names."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ValueError(f"not a target: {text}")
    return GpuTarget(text, bool(match[1]), int(match[2]), int(match[3]), match[4])


def supported(
    groups: Mapping[str, int], *, with_ptx: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (machine code targets, PTX targets) that a library supports throughout.

    `groups` counts its fatbins by content (`7.5 8.0 ptx8.0`). Fatbins with code for several
    majors are general; those for a single GPU are special kernels and do not count. A target is
    listed where `ENOUGH` of the general fatbins meant for that GPU or older ones have code that
    runs there (PTX included, unless `with_ptx` is False); PTX is listed where they have PTX.
    """
    parsed, general = _parsed(groups)
    if sum(count for _, count in general) < COMMON * sum(groups.values()):
        return _most_frequent(parsed)
    candidates = {target for targets, _ in general for target in targets}
    kept = [
        candidate
        for candidate in candidates
        if _share(candidate, general, with_ptx=with_ptx) >= ENOUGH
    ]
    return _split(kept)


def partial(groups: Mapping[str, int]) -> tuple[str, ...]:
    """Return the machine code targets that most general fatbins have, and too many have not.

    On such a GPU most operators run and some end in `no kernel image is available`: 1.29.0 on
    Windows has 12.0 everywhere but in 41 files for quantised matrices and mixtures of experts.
    """
    _, general = _parsed(groups)
    candidates = {target for targets, _ in general for target in targets if not target.ptx}
    shares = {candidate: _share(candidate, general, with_ptx=True) for candidate in candidates}
    return ordered(candidate.text for candidate, share in shares.items() if MOST <= share < ENOUGH)


def _parsed(
    groups: Mapping[str, int],
) -> tuple[list[tuple[list[GpuTarget], int]], list[tuple[list[GpuTarget], int]]]:
    """Return all fatbins, and the general ones, as targets and how many fatbins hold them."""
    parsed = [([parse(text) for text in group.split()], count) for group, count in groups.items()]
    return parsed, [
        (targets, count) for targets, count in parsed if len({item.major for item in targets}) > 1
    ]


def _share(
    candidate: GpuTarget, general: list[tuple[list[GpuTarget], int]], *, with_ptx: bool
) -> float:
    capability = candidate.capability
    meant = covered = 0
    for targets, count in general:
        if min(target.capability for target in targets) > capability:
            continue
        meant += count
        if candidate.ptx:
            usable = any(target.ptx and _as_wide(target, candidate) for target in targets)
        else:
            usable = any(
                target.runs_on(capability) and (with_ptx or not target.ptx) for target in targets
            )
        covered += count if usable else 0
    return covered / meant if meant else 0.0


def _as_wide(target: GpuTarget, candidate: GpuTarget) -> bool:
    """Say whether PTX `target` runs wherever PTX `candidate` does."""
    if candidate.suffix or target.suffix:
        return target == candidate
    return target.capability <= candidate.capability


def _most_frequent(
    parsed: list[tuple[list[GpuTarget], int]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    counts: dict[GpuTarget, int] = {}
    for targets, count in parsed:
        for target in targets:
            counts[target] = counts.get(target, 0) + count
    kept = []
    for is_ptx in (False, True):
        part = {target: count for target, count in counts.items() if target.ptx is is_ptx}
        most = max(part.values(), default=0)
        kept += [target for target, count in part.items() if count >= COMMON * most]
    return _split(kept)


def _split(targets: list[GpuTarget]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sass = ordered(target.text for target in targets if not target.ptx)
    return sass, ordered(target.text.removeprefix("ptx") for target in targets if target.ptx)


def ordered(targets: Iterable[str]) -> tuple[str, ...]:
    """Return distinct targets, the oldest GPU first."""
    return tuple(
        sorted(set(targets), key=lambda text: (parse(text).capability, parse(text).suffix))
    )


def covers(tokens: tuple[str, ...] | list[str], capability: tuple[int, int]) -> bool:
    """Say whether machine code among `tokens` runs on a GPU of this compute capability."""
    return any(target.runs_on(capability) for target in map(parse, tokens) if not target.ptx)
