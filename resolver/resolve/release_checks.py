"""Checks of one release: its libraries, and the driver and glibc that it needs."""

from __future__ import annotations

from ..facts.driver import NAMED_BY_DRIVER
from ..matrix.model import LibraryNeed
from ..plan.reasons import Reason, reason
from ..versions import at_least, major, numbers
from .gpu_code import capabilities
from .situation import Situation, cuda_major_runs


def oldest_that_serves(need: LibraryNeed, situation: Situation) -> str | None:
    """Return the oldest release of the distribution that has every symbol of `need`.

    None where even the oldest known wheel has them: a still older library may have them, too.
    """
    distribution, since = situation.matrix.distributions.get(need.distribution or ""), need.since
    if distribution is None or since is None:
        return None
    holding = (
        version
        for contents in distribution.contents
        if contents.platform == situation.platform and need.library in contents.libraries
        for version in contents.versions
    )
    return None if all(at_least(version, since) for version in holding) else since


def glibc_suffices(situation: Situation, floor: str | None) -> bool:
    """Return whether the target's glibc is `floor` or newer: False for musl, True if not known."""
    found = situation.facts.platform.c_library
    if floor is None or found is None:
        return True
    kind, version = found
    return kind == "glibc" and version >= numbers(floor)


def too_old_driver(cuda: str, situation: Situation) -> Reason | None:
    """Return the reason if the driver is known and does not run binaries of `cuda` (`12.8`)."""
    if situation.driver_cuda is None or cuda_major_runs(situation.driver_cuda, cuda):
        return None
    floor = situation.floor(major(cuda)) or ""
    return reason(
        "driver-too-old", cuda=major(cuda), floor=floor, driver_cuda=situation.driver_cuda
    )


def unsupported_gpu(situation: Situation) -> Reason | None:
    """Return the reason if the driver came after the last branch for a GPU, or before the first.

    Before the first of all GPUs, that is: newer ones may be of other machines, with other drivers.

    A driver that named the GPUs itself supports them.
    """
    driver = situation.facts.driver
    named = situation.facts.sources.get("gpus") in NAMED_BY_DRIVER
    if driver is None or driver.version is None or named:
        return None
    release = numbers(driver.version)[0]
    branch = max((number for number in situation.matrix.branches if number <= release), default=0)
    gpus = sorted(capabilities(situation), key=numbers)
    for gpu in gpus:
        rows = (row for row in situation.matrix.last_branches if numbers(gpu) < numbers(row.below))
        last = next((row.branch for row in rows), branch)
        if branch > last:
            return reason("gpu-dropped", gpu=gpu, last=f"R{last}", driver=driver.version)
    for gpu in gpus[:1]:
        news = [
            row.branch
            for row in situation.matrix.first_branches
            if numbers(gpu) >= numbers(row.capability)
        ]
        if news and release < max(news):
            return reason("gpu-too-new", gpu=gpu, first=f"R{max(news)}", driver=driver.version)
    return None


def too_old_glibc(floor: str | None, situation: Situation) -> Reason | None:
    """Return the reason if the target's libc is known and is not glibc `floor` or newer."""
    if glibc_suffices(situation, floor):
        return None
    return reason("glibc-too-old", glibc=str(floor), libc=str(situation.facts.platform.libc))
