"""What other distributions mean for a plan: those that use CUDA, and those that go."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES
from ..errors import cause
from ..facts.model import CPU_BUILD, GPU_BUILD, Package
from ..matrix.torch import TORCH
from ..messages.sections import size
from ..plan.model import REMOVAL_BLOCKERS, Rejected
from ..plan.reasons import Consumer, Finding, Named, Severity, Wanting, finding
from ..versions import allows, at_least, major, newest_first, overlap, requirement
from .candidate import Candidate
from .changes import Changes
from .consumers import other_cuda
from .environment import consequences
from .onnxruntime_installed import InstalledOnnxRuntime
from .placeholder import nearest_pin
from .situation import Situation

_CUDNN = re.compile(r"(?:lib)?cudnn\w*?(?:64_|\.so\.)(\d+)")
"""The major of cuDNN in a file name: `libcudnn_ops.so.9`, `cudnn_ops64_9.dll`."""


def consumer_findings(situation: Situation, rejected: Sequence[Rejected]) -> Iterator[Finding]:
    """Say who else uses CUDA and decides, who disagrees with whom, and whose files nobody read."""
    deciding = {
        by
        for rejection in rejected
        for why in rejection.reasons
        if why.code in {"consumer-other-cuda", "consumer-other-cudnn", "folder-used"}
        for by in why.by
    }
    users = [
        consumer
        for consumer in situation.consumers
        if consumer.by in deciding or consumer.name == TORCH
    ]
    if len({consumer.cuda for consumer in users if consumer.cudnn}) > 1:
        who = tuple(Wanting(consumer.by, f"CUDA {consumer.cuda}") for consumer in users)
        yield finding("consumers-disagree", "error", by=who)
    elif deciding:
        yield finding("consumers-kept", "info", by=tuple(sorted(deciding, key=str)))
    for consumer in situation.consumers:
        if consumer.why.code in {"consumer-named", "consumer-unread"}:
            yield finding("consumer-not-read", "info", by=consumer.by)


def cudnn_findings(situation: Situation, changes: Changes | None) -> Iterator[Finding]:
    """Say who opens a cuDNN that is not here, beside another one that is, or that the plan brings.

    torch brings its own to Windows; what others require of the nvidia wheels pip looks after.
    """
    gone = changes.uninstall if changes else ()
    versions = {
        package.name: package.version
        for package in situation.facts.packages
        if package.name not in gone
    }
    versions |= {wheel.name: wheel.version for wheel in (changes.selection if changes else ())}
    found = {major(versions[name]) for name in versions if name.startswith("nvidia-cudnn-cu")}
    found |= _cudnn_of(library.name for library in situation.facts.libraries)
    found |= {
        consumer.cudnn
        for consumer in situation.consumers
        if consumer.name == TORCH and consumer.cudnn
    }
    for consumer in situation.consumers:
        wanted = _cudnn_of(consumer.needs) if consumer.why.code == "consumer-read" else set()
        if found and wanted and not wanted & found and not consumer.idle:
            wish = release_for_cudnn(found, consumer, situation)
            yield finding(
                "consumer-without-cudnn",
                "info",
                by=consumer.by,
                cudnn=tuple(sorted(wanted)),
                found=tuple(sorted(found)),
                way=cause("release-for-cudnn", wish=wish)
                if wish
                else cause("no-release-for-cudnn"),
            )


def release_for_cudnn(
    cudnn: Collection[str], consumer: Consumer, situation: Situation
) -> str | None:
    """Return the oldest newer release that opens no other major of `cudnn`: `older>=4.5.0`."""
    rows = situation.matrix.consumers.get(consumer.name, ())
    fits = [
        row.first
        for row in rows
        if row.platform == situation.platform and not at_least(consumer.version, row.first)
        if _cudnn_of(row.needs).issubset(cudnn)
    ]
    return f"{consumer.name}>={min(fits, key=newest_first)}" if fits else None


def _cudnn_of(libraries: Iterable[str]) -> set[str]:
    """Return the majors of cuDNN in file names of `libraries`."""
    return {found[1] for found in map(_CUDNN.match, libraries) if found}


def removal_findings(situation: Situation, changes: Changes) -> Iterator[Finding]:
    """Say why others are removed, and what with them; and what nothing needs, and stays."""
    going = {package.name for package in changes.orphaned}
    for code, packages in (("orphans-leave", changes.orphaned), ("orphans", changes.needless)):
        if packages:
            listed = tuple(Named(package.name, package.version) for package in packages)
            names = " ".join(package.name for package in packages)
            weight = _size_of(packages, situation)
            more = cause("of-size", size=size(weight)) if weight else ""
            yield finding(code, "info", distributions=listed, size=more, names=names)
    for name in changes.uninstall:
        if name == GPU_BUILD:
            yield finding("cuda-lost", "warning", distribution=name)
        elif name not in situation.matrix.owners and name not in {LIBRARIES, *going}:
            yield finding("shared-folder", "error", rival=name)
        elif name in situation.matrix.own_providers:
            provider = situation.matrix.own_providers[name]
            yield finding("provider-lost", "warning", distribution=name, provider=provider)
        elif name in situation.matrix.training:
            yield finding("training-lost", "warning", distribution=name)


def _size_of(packages: Iterable[Package], situation: Situation) -> int:
    """Return the bytes of installed packages; of those whose files nobody counted their wheels'."""
    total = 0
    for package in packages:
        distribution = situation.matrix.distributions.get(package.name)
        releases = distribution.releases if distribution else ()
        sizes = (
            release.size
            for release in releases
            if (release.version, release.platform) == (package.version, situation.platform)
        )
        total += package.size or next(sizes, 0)
    return total


def held_findings(situation: Situation, changes: Changes) -> Iterator[Finding]:
    """Say what has to go or to change, and `apply` does not remove."""
    moved = {*changes.uninstall, *(wheel.name for wheel in changes.install)}
    for package in situation.facts.packages:
        if package.removal_blocker and package.name in moved and not package.outside:
            by = Named(package.name, package.version)
            yield finding(
                REMOVAL_BLOCKERS[package.removal_blocker], "error", by=by, name=package.name
            )


def kept_findings(alternative: InstalledOnnxRuntime) -> Iterator[Finding]:
    """Say which distribution provides the GPU in place of onnxruntime-gpu, and stays."""
    by = Named(alternative.packages[-1].name, alternative.packages[-1].version)
    provider = alternative.row.provider if alternative.row else "CUDAExecutionProvider"
    yield finding(
        "plugin-provider" if alternative.plugin else "build-kept", "info", by=by, provider=provider
    )


def conflict_findings(situation: Situation, best: Candidate, changes: Changes) -> Iterator[Finding]:
    """Say which distributions that stay would miss what they require, as `apply` asks it.

    And who requires another release than the one that is taken, though the placeholder hides it
    from an installer. What uv chooses later, and what a new torch brings along, is not
    known here.
    """
    coming = [Package(name=wheel.name, version=wheel.version) for wheel in changes.install]
    coming += [
        Package(name=companion.name, version=companion.version) for companion in changes.companions
    ]
    along = situation.moving_with_torch if TORCH in {package.name for package in coming} else ()
    unmet = consequences(situation.environment, {*changes.uninstall, *along}, coming).unmet
    who = [Wanting(Named(each.by, each.version), each.text) for each in unmet]
    if nearest_pin(best.version, situation) is None:
        who += _ignored_demands(CPU_BUILD, SpecifierSet(f"=={best.version}"), situation)
    for wanted in filter(None, map(requirement, changes.requires)):
        who += _ignored_demands(canonicalize_name(wanted.name), wanted.specifier, situation)
    if situation.options.conflicts:
        apart = (
            consumer
            for consumer in situation.consumers
            if other_cuda(best.build, consumer) and not consumer.idle
        )
        who += [Wanting(consumer.by, f"CUDA {consumer.cuda}") for consumer in apart]
    if who:
        yield finding("would-conflict", "warning", by=tuple(dict.fromkeys(who)))


def _ignored_demands(name: str, taken: SpecifierSet, situation: Situation) -> Iterator[Wanting]:
    """Yield who requires of the distribution `name` what `taken` excludes, and has it now."""
    installed = situation.environment.version(name)
    for demand in situation.environment.demanded(name):
        met = installed is not None and allows(demand.specifier, installed)
        counts = demand.distribution not in situation.matrix.owners
        if met and counts and not overlap(taken, demand.specifier):
            yield Wanting(demand.by, demand.of(name))


def pin_findings(situation: Situation, best: Candidate, *, coming: bool) -> Iterator[Finding]:
    """Say which release is taken for the one that packages pin, and that has no GPU build."""
    pinned = nearest_pin(best.version, situation)
    if pinned is not None:
        by = tuple(
            demand.by
            for demand in situation.demanded(CPU_BUILD)
            if not allows(demand.specifier, best.version)
        )
        severity: Severity = "warning" if coming else "info"
        yield finding("pin-nearest", severity, by=by, pinned=pinned, version=best.version)
