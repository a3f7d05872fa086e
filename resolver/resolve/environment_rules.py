"""The rules of an environment: why a release cannot be used beside what is installed.

A rule is a small function `(candidate, situation) -> reasons`. What the user asks for stands here,
too: no machine excludes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from packaging.specifiers import SpecifierSet

from ..facts.model import CPU_BUILD, GPU_BUILD
from ..plan.reasons import Reason, reason
from ..versions import allows, major, overlap
from .candidate import Candidate
from .components import rivals
from .consumers import holders, other_cuda
from .dependencies import dependencies_of
from .placeholder import nearest_pin
from .situation import Situation
from .torch_rules import against_torch


def check_torch(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask that torch can be loaded into the same process."""
    if candidate.build.platform == situation.platform and candidate.build.cudnn:
        yield from against_torch(candidate.build, situation)


def check_consumers(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask that those who use CUDA can share cuDNN with the build.

    One that finds no CUDA of its own here does not make an installed release wrong. One that finds
    its cuDNN in an installed wheel, and declares nothing, keeps the major of that wheel.
    """
    apart = candidate.build.platform != situation.platform or not candidate.build.cudnn
    if apart or situation.options.conflicts:
        return
    for consumer in situation.consumers:
        if other_cuda(candidate.build, consumer) and not consumer.idle:
            yield reason(
                "consumer-other-cuda",
                by=consumer.by,
                cuda=str(consumer.cuda),
                cudnn=candidate.build.cudnn,
                needs=major(candidate.build.cuda),
            )
    cuda = major(candidate.build.cuda)
    wheel = situation.package(f"nvidia-cudnn-cu{cuda}")
    if wheel is None or major(wheel.version) == candidate.build.cudnn:
        return
    using = tuple(
        consumer.by
        for consumer in situation.consumers
        if consumer.why.code == "consumer-read"
        and (consumer.cuda, consumer.cudnn) == (cuda, major(wheel.version))
    )
    if using:
        installed = f"{wheel.name} {wheel.version}"
        yield reason(
            "consumer-other-cudnn", by=using, cudnn=candidate.build.cudnn, installed=installed
        )


def check_pinned_libraries(candidate: Candidate, _: Situation) -> Iterator[Reason]:
    """Ask that what is installed allows the nvidia wheels that would serve without it."""
    yield from candidate.components.pinned


def check_shared_folders(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Reject wheels that own the same files as a distribution that must stay.

    The user's own files may require one that is not installed yet.
    """
    for component in candidate.components.chosen:
        for rival in rivals(component.release.name, situation):
            installed = situation.package(rival) is not None
            name = component.release.name
            requiring = tuple(
                demand.by
                for demand in situation.demanded(rival)
                if installed or demand.distribution is None
            )
            using = holders(situation.matrix.distributions[rival], situation.consumers)
            if requiring:
                yield reason("folder-owned", distribution=name, rival=rival, by=requiring)
            elif installed and using and not situation.options.conflicts:
                yield reason("folder-used", distribution=name, rival=rival, by=using)


def check_numpy(candidate: Candidate, _: Situation) -> Iterator[Reason]:
    """Ask for a numpy that every package allows, if it must change."""
    if isinstance(candidate.numpy, Reason):
        yield candidate.numpy


def check_requirements(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask that installed packages allow this release and what it requires."""
    near = nearest_pin(candidate.version, situation) is not None
    for name in (GPU_BUILD,) if near else (CPU_BUILD, GPU_BUILD):
        for demand in situation.demanded(name):
            if not allows(demand.specifier, candidate.version):
                yield reason("demand-conflict", by=demand.by, requires=demand.of(name))
    if candidate.build.platform != situation.platform:
        return
    for name, needed in dependencies_of(candidate.build, situation).items():
        demands = situation.demanded(name)
        installed = situation.package(name)
        if installed is not None and (name == "numpy" or allows(needed, installed.version)):
            continue
        # Of a thousand demands most are the same text, and `requirement` makes one object of it.
        different = {id(demand.specifier): demand.specifier for demand in demands}
        refused = {key for key, wanted in different.items() if not overlap(needed, wanted)}
        refusing = [demand for demand in demands if id(demand.specifier) in refused]
        together = reduce(SpecifierSet.__and__, different.values(), needed)
        if not refusing and not overlap(needed, together):
            refusing = [*demands]  # each allows some versions, and all of them none
        for demand in refusing:
            yield reason(
                "requirement-conflict",
                needs=f"{name}{needed}",
                by=demand.by,
                requires=demand.of(name),
            )


def check_options(candidate: Candidate, situation: Situation) -> Iterator[Reason]:
    """Ask for the release and the CUDA of the user's options."""
    options = situation.options
    if options.onnxruntime and not allows(SpecifierSet(options.onnxruntime), candidate.version):
        yield reason("not-wished", wish=f"--ort {options.onnxruntime}")
    if options.cuda is not None and major(candidate.build.cuda) != options.cuda:
        yield reason("not-wished", wish=f"--cuda {options.cuda}")
