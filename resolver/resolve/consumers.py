"""The installed distributions that use CUDA, and what a plan owes them.

They share a process with onnxruntime, so they are kept whole, as an installed torch is. cuDNN
decides: it has one file name for several CUDA majors, and opens the libraries of its own. cuRAND,
the other one with such a name, opens no library.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from ..facts.model import Facts, Package
from ..matrix.model import Build, ConsumerRow, Distribution, Matrix
from ..matrix.torch import DOMAIN_LIBRARIES, TORCH
from ..plan.reasons import Consumer, Named, reason
from ..versions import at_least, major
from .torch_installed import InstalledTorch

UNDECLARED = frozenset({"consumer-read", "consumer-named"})
"""By why one is known to use CUDA: its files or its name say so, and its requirements do not."""
_NAMED = re.compile(r"-cu(?:da)?(1[1-9])(?!\d\d)")
"""`cupy-cuda12x`, `cudf-cu13`, `nvidia-dali-cuda120`, `jax-cuda12-plugin`."""


def find_consumers(
    facts: Facts, matrix: Matrix, platform: str, required: Mapping[str, Collection[str]]
) -> tuple[Consumer, ...]:
    """Return the installed distributions that use CUDA, in the order of `facts`; torch apart.

    `required` are the nvidia wheels that each requires, by its name: requirements in force.
    """
    aside = {*matrix.owners, *matrix.plugins, *matrix.distributions, TORCH, *DOMAIN_LIBRARIES}
    found: list[Consumer] = []
    for package in facts.packages:
        component = package.name.startswith("nvidia-") and package.name not in matrix.consumers
        if package.name not in aside and not component:
            wheels = sorted(required.get(package.name, ()))
            consumer = _consumer(package, facts, matrix, platform, wheels)
            if consumer is not None:
                found.append(consumer)
    usable = _usable_cuda(facts, matrix) if found else frozenset()
    return tuple(consumer._replace(idle=consumer.cuda not in usable) for consumer in found)


def torch_consumer(
    torch: InstalledTorch, matrix: Matrix, platform: str, wheels: Collection[str]
) -> Consumer:
    """Return the installed torch, which is built for CUDA, as one more consumer."""
    cuda = str(torch.cuda)
    return Consumer(
        name=TORCH,
        version=torch.version,
        cuda=major(cuda),
        cudnn=major(torch.cudnn) if torch.cudnn else None,
        needs=_libraries_of(wheels, matrix, platform),
        why=reason("consumer-built", cuda=cuda),
    )


def other_cuda(build: Build, consumer: Consumer) -> bool:
    """Return whether `build` and `consumer` need the cuDNN of two CUDA majors: one name, two files.

    torch has a rule of its own.
    """
    return (
        consumer.name != TORCH
        and consumer.cuda is not None
        and consumer.cuda != major(build.cuda)
        and consumer.cudnn == build.cudnn
    )


def holders(distribution: Distribution, consumers: Iterable[Consumer]) -> tuple[Named, ...]:
    """Return who may need an installed nvidia wheel and declares nothing: users of its CUDA."""
    return tuple(
        consumer.by
        for consumer in consumers
        if consumer.why.code in UNDECLARED and consumer.cuda == distribution.cuda
    )


def _consumer(
    package: Package, facts: Facts, matrix: Matrix, platform: str, wheels: Collection[str]
) -> Consumer | None:
    rows = matrix.consumers.get(package.name, ())
    named = _NAMED.search(package.name)
    if not (rows or named or wheels):
        return None
    row = next((row for row in rows if _covers(row, package, platform)), None)
    consumer = Consumer(
        name=package.name,
        version=package.version,
        cuda=named[1] if named else None,
        cudnn=None,
        needs=(),
        why=reason("consumer-named", cuda=named[1] if named else ""),
    )
    if row is not None and row.needs:
        why = reason("consumer-read", libraries=tuple(row.needs))
        return consumer._replace(
            cuda=row.cuda or consumer.cuda, cudnn=row.cudnn, needs=row.needs, why=why
        )
    if wheels:
        majors = {matrix.distributions[name].cuda for name in wheels}
        return consumer._replace(
            cuda=majors.pop() if len(majors) == 1 else None,
            cudnn=_cudnn_major(wheels, facts),
            needs=_libraries_of(wheels, matrix, platform),
            why=reason("consumer-requires", wheels=tuple(wheels)),
        )
    if named:
        return consumer
    known = any(row.platform == platform for row in rows)
    if row is None and known:
        return consumer._replace(why=reason("consumer-unread", version=package.version))
    return None


def _covers(row: ConsumerRow, package: Package, platform: str) -> bool:
    return (
        row.platform == platform
        and at_least(package.version, row.first)
        and at_least(row.last, package.version)
    )


def _cudnn_major(wheels: Iterable[str], facts: Facts) -> str | None:
    """Return the major of the installed cuDNN among `wheels`."""
    installed = (facts.package(name) for name in wheels if name.startswith("nvidia-cudnn"))
    return next((major(package.version) for package in installed if package), None)


def _libraries_of(wheels: Collection[str], matrix: Matrix, platform: str) -> tuple[str, ...]:
    """Return the libraries in `wheels` that a build of onnxruntime-gpu needs too."""
    needs = {need for build in matrix.builds if build.platform == platform for need in build.needs}
    return tuple(sorted({need.library for need in needs if need.distribution in wheels}))


def _usable_cuda(facts: Facts, matrix: Matrix) -> frozenset[str | None]:
    """Return the CUDA majors of which a wheel or a library of the system is here."""
    with_wheel = {
        matrix.distributions[package.name].cuda
        for package in facts.packages
        if package.name in matrix.distributions
    }
    system = {library.name for library in facts.libraries}
    majors: dict[str, set[str]] = {}
    for cuda, library in matrix.providers:
        if library in system:
            majors.setdefault(library, set()).add(cuda)
    return frozenset(with_wheel.union(*(found for found in majors.values() if len(found) == 1)))
