"""The dependencies of onnxruntime-gpu that are not NVIDIA's: numpy, protobuf and the like.

uv chooses their versions. The plan itself replaces only an installed numpy that the release
does not allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from ..facts.markers import is_in_force
from ..matrix.model import Build, BuildWheel, Limit, Release
from ..plan.reasons import Reason, reason
from ..versions import allows, newest_first, overlap, requirement, version
from .components import Component
from .release_checks import glibc_suffices
from .situation import Situation


def choose_numpy(build: Build, situation: Situation) -> Component | Reason | None:
    """Return the numpy to replace the installed one, why there is none, or None to keep it."""
    installed = situation.package("numpy")
    needed = dependencies_of(build, situation).get("numpy")
    if installed is None or needed is None or allows(needed, installed.version):
        return None
    fitting = [
        release
        for release in situation.matrix.numpy
        if release.platform == situation.platform
        and release.python == situation.abi
        and glibc_suffices(situation, release.glibc)
        and allows(needed, release.version)
    ]
    demands = situation.demanded("numpy")
    allowed = [
        release
        for release in fitting
        if all(allows(demand.specifier, release.version) for demand in demands)
    ]
    if allowed:
        every = situation.environment.demanded("numpy")  # where conflicts are allowed, the fewest

        def order(release: Release) -> tuple[int, Version]:
            met = sum(allows(demand.specifier, release.version) for demand in every)
            return met, newest_first(release.version)

        return Component(release=max(allowed, key=order), installed=False)
    if not fitting:
        return reason("numpy-no-wheel", needs=str(needed), python=situation.abi)
    versions = [release.version for release in fitting]
    refusing = [
        demand.by
        for demand in demands
        if not any(allows(demand.specifier, version) for version in versions)
    ]
    return reason("numpy-conflict", needs=str(needed), by=tuple(refusing))


def dependencies_of(build: Build, situation: Situation) -> Mapping[str, SpecifierSet]:
    """Return what `build` requires on this Python, by canonical name.

    The requirements of its metadata, and the limits that its metadata lacks (`limits.toml`).
    """
    wheel = wheel_for(build, situation.abi)
    requires = wheel.requires if wheel else ()
    return _dependencies(
        requires, build.version, situation.matrix.limits, tuple(situation.markers.items())
    )


@lru_cache(maxsize=4096)  # asked for by several rules, and the same on most machines of a fleet
def _dependencies(
    requires: tuple[str, ...],
    version: str,
    limits: tuple[Limit, ...],
    markers: tuple[tuple[str, str], ...],
) -> Mapping[str, SpecifierSet]:
    required: dict[str, SpecifierSet] = {}
    for text in requires:
        wanted = requirement(text)
        if wanted is not None and is_in_force(wanted, dict(markers), ""):
            name = canonicalize_name(wanted.name)
            required[name] = required.get(name, SpecifierSet()) & wanted.specifier
    for limit in limits:
        if allows(SpecifierSet(limit.onnxruntime), version):
            known = required.get(limit.name, SpecifierSet())
            required[limit.name] = known & SpecifierSet(limit.requires)
    return required


def wheel_for(build: Build, abi: str) -> BuildWheel | None:
    """Return the wheel of `build` for the ABI tag `abi`, or None."""
    return next((wheel for wheel in build.wheels if wheel.python == abi), None)


def missing_requirements(build: Build, situation: Situation) -> tuple[str, ...]:
    """Return the requirements of `build` that no installed package satisfies.

    They include what other packages and the user's file require of the same distribution. A numpy
    that the plan replaces is left out; what has lost its files comes again as it was.
    """
    missing: list[str] = []
    for name, needed in dependencies_of(build, situation).items():
        installed = situation.package(name)
        if installed is not None and allows(needed, installed.version):
            if not installed.intact and version(installed.version):
                missing.append(f"{name}=={installed.version}")
        elif installed is None or name != "numpy":
            wanted = needed
            every = situation.environment.demanded(name) if situation.options.conflicts else ()
            for demand in every or situation.demanded(name):  # some may exclude what is needed
                if overlap(wanted, demand.specifier):
                    wanted &= demand.specifier
            missing.append(f"{name}{wanted}")
    return tuple(sorted(missing))
