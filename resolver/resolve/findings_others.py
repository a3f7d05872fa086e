"""What other distributions mean for a plan: those that use CUDA, and those that go."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..companions.contents import LIBRARIES
from ..errors import cause
from ..facts.model import GPU_BUILD, Package
from ..facts.unmet import new_conflicts
from ..matrix.torch import TORCH
from ..plan.model import HELD, Rejected
from ..plan.reasons import Consumer, Finding, Named, Wanting, finding
from ..versions import at_least, major, newest_first
from .changes import Changes
from .demands import required_name
from .onnxruntime_installed import InstalledOnnxRuntime
from .rules import rivals
from .situation import Situation

_CUDNN = re.compile(r"(?:lib)?cudnn\w*?(?:64_|\.so\.)(\d+)")
"""The major of cuDNN in a file name: `libcudnn_ops.so.9`, `cudnn_ops64_9.dll`."""


def consumer_findings(here: Situation, rejected: Sequence[Rejected]) -> Iterator[Finding]:
    """Say who else uses CUDA and decides, who disagrees with whom, and whose files nobody read."""
    deciding = {
        by
        for row in rejected
        for why in row.reasons
        if why.code in {"consumer-other-cuda", "consumer-other-cudnn", "folder-used"}
        for by in why.by
    }
    users = [row for row in here.consumers if row.by in deciding or row.name == TORCH]
    if len({row.cuda for row in users if row.cudnn}) > 1:
        who = tuple(Wanting(row.by, f"CUDA {row.cuda}") for row in users)
        yield finding("consumers-disagree", "error", by=who)
    elif deciding:
        yield finding("consumers-kept", "info", by=tuple(sorted(deciding, key=str)))
    for row in here.consumers:
        if row.why.code in {"consumer-named", "consumer-unread"}:
            yield finding("consumer-not-read", "info", by=row.by)


def cudnn_findings(here: Situation, changes: Changes | None) -> Iterator[Finding]:
    """Say who opens a cuDNN that is not here, beside another one that is, or that the plan brings.

    torch brings its own to Windows; what others require of the nvidia wheels pip looks after.
    """
    gone = changes.uninstall if changes else ()
    versions = {row.name: row.version for row in here.facts.packages if row.name not in gone}
    versions |= {wheel.name: wheel.version for wheel in (changes.selection if changes else ())}
    there = {major(versions[name]) for name in versions if name.startswith("nvidia-cudnn-cu")}
    there |= _cudnn_of(library.name for library in here.facts.libraries)
    there |= {row.cudnn for row in here.consumers if row.name == TORCH and row.cudnn}
    for row in here.consumers:
        wanted = _cudnn_of(row.needs) if row.why.code == "consumer-read" else set()
        if there and wanted and not wanted & there and not row.idle:
            wish = release_for_cudnn(there, row, here)
            yield finding(
                "consumer-without-cudnn",
                "info",
                by=row.by,
                cudnn=", ".join(sorted(wanted)),
                found=", ".join(sorted(there)),
                way=cause("release-for-cudnn", wish=wish)
                if wish
                else cause("no-release-for-cudnn"),
            )


def release_for_cudnn(cudnn: Collection[str], consumer: Consumer, here: Situation) -> str | None:
    """Return the oldest newer release that opens no other major of `cudnn`: `older>=4.5.0`."""
    rows = here.matrix.consumers.get(consumer.name, ())
    fits = [
        row.first
        for row in rows
        if row.platform == here.platform and not at_least(consumer.version, row.first)
        if _cudnn_of(row.needs).issubset(cudnn)
    ]
    return f"{consumer.name}>={min(fits, key=newest_first)}" if fits else None


def _cudnn_of(libraries: Iterable[str]) -> set[str]:
    """Return the majors of cuDNN in file names of `libraries`."""
    return {found[1] for found in map(_CUDNN.match, libraries) if found}


def removal_findings(here: Situation, changes: Changes) -> Iterator[Finding]:
    """Say why others go, and what goes with them."""
    shared = {rival for wheel in changes.selection for rival in rivals(wheel.name, here)}
    goes = [name for name in changes.uninstall if name.startswith("nvidia-") and name not in shared]
    if goes:
        yield finding("torch-leaves", "info", distributions=", ".join(goes))
    for name in changes.uninstall:
        if name == GPU_BUILD:
            yield finding("cuda-lost", "warning", distribution=name)
        elif name not in here.matrix.owners and name not in {LIBRARIES, *goes}:
            yield finding("shared-folder", "error", rival=name)
        elif name in here.matrix.own_providers:
            provider = here.matrix.own_providers[name]
            yield finding("provider-lost", "warning", distribution=name, provider=provider)
        elif name in here.matrix.training:
            yield finding("training-lost", "warning", distribution=name)


def held_findings(here: Situation, changes: Changes) -> Iterator[Finding]:
    """Say what has to go or to change, and `apply` does not remove."""
    moved = {*changes.uninstall, *(wheel.name for wheel in changes.install)}
    for row in here.facts.packages:
        if row.held and row.name in moved and not row.outside:
            by = Named(row.name, row.version)
            yield finding(HELD[row.held], "error", by=by, name=row.name)


def kept_findings(way: InstalledOnnxRuntime) -> Iterator[Finding]:
    """Say which distribution gives the GPU by another way than onnxruntime-gpu, and stays."""
    by = Named(way.packages[-1].name, way.packages[-1].version)
    provider = way.row.provider if way.row else "CUDAExecutionProvider"
    yield finding(
        "plugin-provider" if way.plugin else "build-kept", "info", by=by, provider=provider
    )


def conflict_findings(here: Situation, changes: Changes) -> Iterator[Finding]:
    """Say which distributions that stay would miss what they require, as `apply` asks it.

    What the engine chooses later, and what a new torch brings along, is not known here.
    """
    coming = {wheel.name: wheel.version for wheel in changes.install}
    coming |= {companion.name: companion.version for companion in changes.companions}
    moved = {*changes.uninstall, *coming}
    before = [_requiring(package, moved) for package in here.facts.packages]
    after = [package for package in before if package.name not in moved]
    after += [Package(name=name, version=version) for name, version in coming.items()]
    unmet = new_conflicts(before, after, here.markers)
    if unmet:
        who = tuple(Wanting(Named(each.by, each.version), str(each.requirement)) for each in unmet)
        yield finding("would-conflict", "warning", by=who)


def _requiring(package: Package, names: Collection[str]) -> Package:
    """Return `package` with its requirements of `names` alone: the others stay as they are."""
    lines = tuple(line for line in package.requires if required_name(line)[0] in names)
    return package._replace(requires=lines)
