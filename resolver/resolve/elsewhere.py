"""Builds that PyPI does not have: Microsoft's indexes for other CUDA majors, conda-forge, Jetson's.

What an index has is not known until it is read. So a release of PyPI is imagined as a build for the
CUDA of that index, and the same rules say whether it would work here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ..facts.model import GPU_BUILD
from ..matrix.model import DEFAULT_INDEX, Build, Feed
from ..plan.model import Rejected, Unlock
from ..plan.reasons import Named, reason
from ..versions import at_least, major, newest_first, numbers
from .gpu_code import capabilities
from .rules import is_usable
from .situation import Situation
from .torch_choice import without_torch

_JETSON_CHIPS = frozenset({"5.3", "6.2", "7.2", "8.7"})
"""Nano, TX2, Xavier, Orin: https://developer.nvidia.com/cuda-gpus."""
_OF_MACHINE = frozenset(
    {"no-wheel-python", "driver-too-old", "no-gpu-code", "ptx-needs-driver", "glibc-too-old"}
)
"""Reasons against a build that another build of the same release need not have."""


def builds_elsewhere(
    situation: Situation, now: str | None, rejected: Sequence[Rejected]
) -> Iterator[Unlock]:
    """Yield where else a build may be that works here and is newer than `now`; None: none works."""
    feeds = [feed for feed in situation.matrix.feeds if _serves(feed, situation)]
    feeds.sort(key=lambda feed: int(feed.cuda), reverse=True)
    if now is None:
        yield from _without_any(situation)
        older = list(_feed_for_older_cudnn(situation))
        if older:
            yield from older
            return
    found = [(feed, version) for feed in feeds for version in _usable(feed, situation, now)]
    if found:
        yield _unlocked(max(found, key=lambda row: newest_first(row[1]))[0])
    elif now is None and _is_stopped_by_machine(situation, rejected):
        able = (feed for feed in feeds if not _is_older_than_all_code(feed, situation))
        yield from map(_unlocked, islice(able, 1))


def _without_any(situation: Situation) -> Iterator[Unlock]:
    """Yield who builds for a machine for which PyPI has nothing."""
    if _is_jetson(situation):
        change = reason("jetson-index")
        yield Unlock(changes=(change,), gains=(Named(GPU_BUILD, ""),), of="Jetson")
        return
    for rebuilt in situation.matrix.conda_builds:
        driver, oldest = situation.driver_cuda, numbers(rebuilt.capability)
        if rebuilt.platform == situation.platform and driver is not None and situation.gpus != ():
            runs = major(driver) == rebuilt.cuda
            if runs and all(numbers(gpu) >= oldest for gpu in capabilities(situation)):
                change = reason("conda-build", version=rebuilt.version, build=rebuilt.build)
                yield Unlock(changes=(change,), gains=(Named("onnxruntime", ""),), of="conda-forge")


def _is_jetson(situation: Situation) -> bool:
    """Return whether it is a Jetson, by its own word or by a GPU that nothing else on Arm has."""
    platform = situation.facts.platform
    arm = situation.platform == "linux_aarch64"
    return platform.jetson is not None or (
        arm and not _JETSON_CHIPS.isdisjoint(capabilities(situation))
    )


def _unlocked(feed: Feed) -> Unlock:
    change = reason("ort-index", url=feed.url)
    return Unlock(
        changes=(change,), gains=(Named(GPU_BUILD, ""),), of=f"CUDA {feed.cuda}", url=feed.url
    )


def _serves(feed: Feed, situation: Situation) -> bool:
    """Return whether `feed` is for this machine: its system, its Python and its driver."""
    facts, cuda = situation.facts, situation.driver_cuda
    able = cuda is not None and situation.gpus != () and facts.python.implementation == "cpython"
    return (
        able
        and situation.platform in feed.platforms
        and not (facts.platform.libc or "").startswith("musl")
        and numbers(str(cuda))[0] >= int(feed.cuda)
    )


def _usable(feed: Feed, situation: Situation, now: str | None) -> Iterator[str]:
    """Yield the newest release above `now` that would work, were it in `feed`; none if none does.

    A torch of the plan's own choice works with any.
    """
    tried = situation if situation.options.torch == "keep" else without_torch(situation)
    for build in _imagined(feed, tried):
        if now is not None and newest_first(build.version) <= newest_first(now):
            return
        if is_usable(build, tried):
            yield build.version
            return


def _imagined(feed: Feed, situation: Situation) -> Iterator[Build]:
    """Yield PyPI's releases for other CUDA majors as builds for that of `feed`, newest first.

    Each as the last known build for that CUDA before it, or else the first.
    """
    system = situation.facts.platform.system
    listed = {
        (build.platform == situation.platform, build.version): build
        for build in situation.matrix.builds
        if build.index_url == DEFAULT_INDEX and build.platform.startswith(system)
    }
    known = [build for build in listed.values() if major(build.cuda) == feed.cuda]
    known.sort(key=lambda build: newest_first(build.version))
    releases = {version for _, version in listed if at_least(version, feed.first)}
    for version in sorted(releases, key=newest_first, reverse=True) if known else ():
        own = listed.get((True, version))
        if own is not None and major(own.cuda) == feed.cuda:
            continue
        older = [build for build in known if at_least(version, build.version)]
        published = own or listed[False, version]
        yield (older or known[:1])[-1]._replace(
            version=version,
            platform=situation.platform,
            index_url=feed.url,
            wheels=published.wheels,
            glibc=published.glibc,
            requires=published.requires,
        )


def _is_stopped_by_machine(situation: Situation, rejected: Sequence[Rejected]) -> bool:
    """Return whether the machine or its Python speaks against each release of PyPI."""
    stopped = {
        rejection.version
        for rejection in rejected
        if any(why.code in _OF_MACHINE for why in rejection.reasons)
    }
    return stopped.issuperset(build.version for build in situation.matrix.builds)


def _is_older_than_all_code(feed: Feed, situation: Situation) -> bool:
    """Return whether a GPU is below all that any build for this CUDA major was compiled for."""
    targets = {
        numbers(target.rstrip("af"))
        for build in situation.matrix.builds
        if major(build.cuda) == feed.cuda
        for target in (*build.sass, *build.ptx)
    }
    return any(targets and numbers(gpu) < min(targets) for gpu in capabilities(situation))


def _feed_for_older_cudnn(situation: Situation) -> Iterator[Unlock]:
    """Yield the index for the CUDA of one whose cuDNN is older than that of PyPI's builds.

    torch 2.1 to 2.3 and ctranslate2 4.0 to 4.4 have CUDA 12 and cuDNN 8, as the builds of that
    index do (1.17, 1.18).
    """
    for user in situation.consumers:
        cudnns = [
            int(build.cudnn) for build in situation.matrix.builds if major(build.cuda) == user.cuda
        ]
        for feed in situation.matrix.feeds:
            older = user.cudnn and cudnns and int(user.cudnn) < min(cudnns)
            if older and (feed.cuda == user.cuda) and situation.platform in feed.platforms:
                yield _unlocked(feed)
                return
