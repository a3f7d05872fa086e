"""The ordinary requirements of onnxruntime-gpu: numpy, protobuf, flatbuffers and the like.

Their versions are the engine's business, within what is installed; only numpy is moved by
the plan itself, where a release breaks with the one that is there.
"""

from __future__ import annotations

from functools import reduce

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..matrix.model import Build, BuildWheel
from ..plan.reasons import Reason, reason
from ..versions import allows, newest_first, requirement
from .components import Component
from .release_checks import glibc_suffices
from .situation import Situation


def choose_numpy(build: Build, here: Situation) -> Component | Reason | None:
    """Return the numpy that `build` needs moved here, why there is none, or None to leave it.

    Only an installed numpy is moved; where there is none, the engine picks one, like every ordinary
    requirement.
    """
    installed = here.facts.package("numpy")
    if installed is None:
        return None
    needed = dependencies_of(build, here).get("numpy")
    if needed is None or allows(needed, installed.version):
        return None
    fitting = [
        row
        for row in here.matrix.numpy
        if row.platform == here.platform
        and row.python == here.abi
        and glibc_suffices(here, row.glibc)
        and allows(needed, row.version)
    ]
    demands = here.demanded("numpy")
    allowed = [
        row for row in fitting if all(allows(demand.specifier, row.version) for demand in demands)
    ]
    if allowed:
        newest = max(allowed, key=lambda row: newest_first(row.version))
        return Component(release=newest, installed=False)
    if not fitting:
        return reason("numpy-no-wheel", needs=str(needed), python=here.abi)
    refusing = [
        demand.by
        for demand in demands
        if not any(allows(demand.specifier, row.version) for row in fitting)
    ]
    return reason("numpy-conflict", needs=str(needed), by=", ".join(refusing))


def dependencies_of(build: Build, here: Situation) -> dict[str, SpecifierSet]:
    """Return the ordinary requirements of `build` on this Python, by canonical name.

    Those of its metadata, and the limits that its metadata forgot (`limits.toml`).
    """
    wheel = wheel_for(build, here.abi)
    found: dict[str, SpecifierSet] = {}
    for text in wheel.requires if wheel else ():
        wanted = requirement(text)
        if wanted is not None and is_in_force(wanted, here.markers, ""):
            name = canonicalize_name(wanted.name)
            found[name] = found.get(name, SpecifierSet()) & wanted.specifier
    for limit in here.matrix.limits:
        if allows(SpecifierSet(limit.onnxruntime), build.version):
            found[limit.name] = found.get(limit.name, SpecifierSet()) & SpecifierSet(limit.requires)
    return found


def wheel_for(build: Build, abi: str) -> BuildWheel | None:
    """Return the wheel of `build` for the ABI tag `abi`, or None."""
    return next((wheel for wheel in build.wheels if wheel.python == abi), None)


def missing_requirements(build: Build, here: Situation) -> tuple[str, ...]:
    """Return the ordinary requirements of `build` that nothing installed satisfies.

    Within what others require, and the user's own file. numpy is left out where the plan moves it
    itself.
    """
    found: list[str] = []
    for name, needed in dependencies_of(build, here).items():
        installed = here.facts.package(name)
        moved = name == "numpy" and installed is not None
        if not moved and (installed is None or not allows(needed, installed.version)):
            wanted = [demand.specifier for demand in here.demanded(name)]
            found.append(f"{name}{reduce(SpecifierSet.__and__, wanted, needed)}")
    return tuple(sorted(found))
