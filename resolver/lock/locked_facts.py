"""The facts that a lock is made from: those of a machine without what the lock installs."""

from __future__ import annotations

from collections.abc import Collection

from packaging.utils import canonicalize_name

from ..companions.contents import LIBRARIES
from ..facts.model import LIBRARIES_SEARCHED, Facts
from ..matrix.model import MSVC_RUNTIME as MSVC
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..versions import requirement


def names_in_locks(matrix: Matrix) -> frozenset[str]:
    """Return the distributions that a lock installs, but for nvidia's wheels and torch."""
    texts = {text for build in matrix.builds for wheel in build.wheels for text in wheel.requires}
    required = filter(None, map(requirement, texts))
    names: set[str] = {canonicalize_name(each.name) for each in required}
    return frozenset(names | {*matrix.owners, LIBRARIES, MSVC})


def without_locked_packages(facts: Facts, matrix: Matrix, locked: Collection[str]) -> Facts:
    """Return `facts` as if nothing was installed that a lock installs: `names_in_locks`.

    The requirements of other packages count. nvidia's wheels stay listed, as not intact: they are
    not kept, but rules about shared folders need them. So does torch, whose rules count, and whose
    libraries are not taken: it may not be where the lock is.
    """
    listed = {TORCH, *matrix.distributions}
    packages = tuple(
        package._replace(intact=False) if package.name in listed else package
        for package in facts.packages
        if package.name not in locked
    )
    sources = {name: text for name, text in facts.sources.items() if name != LIBRARIES_SEARCHED}
    return facts._replace(
        packages=packages, toolkits=(), libraries=(), onnxruntime=None, sources=sources
    )
