"""Another version of the packages that exclude a release: what a person asks an index for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..facts.model import CPU_BUILD, GPU_BUILD, Package
from ..facts.own_projects import is_own
from ..messages.shells import pasted_commands
from ..plan.model import Rejected
from ..plan.reasons import Named, Reason, reason
from .findings_others import release_for_cudnn
from .situation import OF_TORCH, Situation

_BY_THEIR_CUDA = {"consumer-other-cuda", "consumer-other-cudnn", "folder-owned", "folder-used"}
"""The reasons that another version of the package need not fix."""


def blocking_names(reasons: Sequence[Reason]) -> list[str]:
    """Return the packages that exclude a release, but torch."""
    names = {by.name for why in reasons for by in why.by if isinstance(by, Named)}
    return sorted(names - OF_TORCH)


def codes_of(name: str, rejected: Sequence[Rejected]) -> set[str]:
    """Return the codes of the reasons for which a package excludes releases."""
    return {
        why.code
        for rejection in rejected
        for why in rejection.environment
        if name in (by.name for by in why.by if isinstance(by, Named))
    }


def other_packages(
    names: Sequence[str], codes: Mapping[str, set[str]], gain: Named, situation: Situation
) -> Iterator[Reason]:
    """Yield the change to other versions of packages, with the command that asks for them.

    Of the user's own projects an index knows nothing: their names may be somebody else's there.
    """
    packages = [package for package in situation.facts.packages if package.name in names]
    own = [package for package in packages if is_own(package)]
    if own:
        yield reason(
            "own-requirement", by=tuple(Named(package.name, package.version) for package in own)
        )
    others = [package for package in packages if not is_own(package)]
    if others:
        yield _other_versions(others, codes, gain, situation)


def _other_versions(
    packages: Sequence[Package], codes: Mapping[str, set[str]], gain: Named, situation: Situation
) -> Reason:
    names = [package.name for package in packages]
    by = tuple(Named(package.name, package.version) for package in packages)
    if all(codes[name] - _BY_THEIR_CUDA for name in names):
        wanted = [f"{build}=={gain.version}" for build in _builds_to_ask(situation, names, gain)]
        words = ("pip", "install", "--dry-run", *names, *wanted)
        command = pasted_commands(words, situation.facts.platform.system)[0].text
        return reason("other-version", by=by, command=command)
    other = None
    if all("consumer-other-cudnn" in codes[name] for name in names):
        other = _other_cudnn(names, gain, situation)
    return other or reason("other-cuda", by=by)


def _other_cudnn(names: Sequence[str], gain: Named, situation: Situation) -> Reason | None:
    """Return the releases of `names` that need no older cuDNN than `gain` does, if all have one."""
    cudnns = {build.cudnn for build in situation.matrix.builds if build.version == gain.version}
    users = [consumer for consumer in situation.consumers if consumer.name in names]
    wishes = [release_for_cudnn(cudnns, consumer, situation) for consumer in users]
    return reason("other-cudnn", wishes=", ".join(filter(None, wishes))) if all(wishes) else None


def _builds_to_ask(situation: Situation, names: Sequence[str], gain: Named) -> Sequence[str]:
    """Return which of the two builds `names` require, for an index to hold against; else the gain.

    A package that requires onnxruntime has nothing against any onnxruntime-gpu.
    """
    required = [
        build
        for build in (CPU_BUILD, GPU_BUILD)
        if any(demand.distribution in names for demand in situation.demanded(build))
    ]
    return required if required and gain.name == GPU_BUILD else [gain.name]
