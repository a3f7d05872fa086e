"""The changes from what is installed to the wheels of a candidate."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..companions.contents import LIBRARIES, PLACEHOLDER, expected_companions, is_version_of
from ..facts.model import GPU_BUILD, Library, Package
from ..matrix.model import IN_TORCH, INSTALLED, LibraryNeed, Release, libraries_of
from ..plan.wheels import Companion, Wheel, wheel_on
from ..versions import numbers
from .candidate import Candidate
from .components import Component, required_distributions, rivals
from .dependencies import missing_requirements
from .gpu_code import code_of_file, gpu_without_code
from .msvc import is_unfit
from .placeholder import placeholder_version
from .plugins import displaced_by_plugin
from .release_checks import oldest_that_serves
from .situation import Situation
from .tensorrt import displaced_by
from .torch_choice import TorchChoice
from .unknown_releases import is_same_major


class Changes(NamedTuple):
    """The difference between what is installed and the wheels of a candidate."""

    selection: tuple[Wheel, ...]
    """The whole set, kept wheels included."""
    uninstall: tuple[str, ...]
    install: tuple[Wheel, ...]
    companions: tuple[Companion, ...]
    placeholder: str
    """The version of the placeholder `onnxruntime`."""
    requires: tuple[str, ...]
    system: Mapping[str, Library]
    """The needed libraries that a program gets from outside the wheels, by name."""
    orphaned: tuple[Package, ...] = ()
    """What was needed before, and goes because nothing needs it afterwards."""
    needless: tuple[Package, ...] = ()
    """What nothing needs, and stays."""

    def __bool__(self) -> bool:
        """Return whether anything is to be done."""
        return bool(self.uninstall or self.install or self.companions or self.requires)


def changes_for(candidate: Candidate, situation: Situation) -> Changes:
    """Return the changes that install the wheels of `candidate`."""
    build = situation.distributions_of(candidate.build)
    owners = tuple(
        package.name
        for package in situation.facts.packages
        if package.name in situation.matrix.owners
        and package.name != build[0].name
        and not (package.provided or package.outside)
    )
    chosen = candidate.components.chosen
    displaced = {
        rival
        for component in chosen
        if component.release.index_url != IN_TORCH
        for rival in rivals(component.release.name, situation)
        if (installed := situation.package(rival)) is not None and not installed.outside
    }
    displaced |= displaced_by(candidate.tensorrt, situation) | displaced_by_plugin(
        candidate.plugin, situation
    )
    assert candidate.wheel is not None  # noqa: S101 - no candidate without a wheel passes the rules
    index = candidate.build.index_url
    own = [
        wheel_on(index, distribution.name, distribution.version, candidate.wheel)
        for distribution in build
    ]
    install = [*own] if owners or not _build_is_installed(candidate, situation) else []
    system = _system_libraries(candidate, situation)
    missing = [component for component in chosen if not component.installed]
    names = {component.release.name for component in missing}
    served = all(
        need.library in system for need in candidate.build.needs if need.distribution in names
    )
    # Libraries of the system that serve are left alone; a plan that installs anything installs all
    # wheels.
    extra = (candidate.runtime, candidate.tensorrt, candidate.plugin)
    beside = [component for component in extra if component]
    coming = [component for component in beside if not component.installed]
    unfit = candidate.runtime in coming and is_unfit(candidate.build, situation)
    asked = candidate.tensorrt in coming or candidate.plugin in coming
    if install or displaced or unfit or asked or not served:
        install += [_wheel(component) for component in (*missing, *coming)]
        system = {}
    else:
        displaced = set()
    if isinstance(candidate.numpy, Component):
        install.append(_wheel(candidate.numpy))
    uninstall = tuple(sorted({*owners, *displaced}))
    requires = missing_requirements(candidate.build, situation)
    kept = [component for component in (*chosen, *beside) if component.installed]
    wheels = {wheel.name: wheel for wheel in (*own, *map(_wheel, kept), *install)}
    selection = sorted_by_name(wheels.values())
    placeholder = placeholder_version(candidate.version, situation)
    expected = expected_companions(
        selection, situation.matrix, situation.platform, situation.matrix.modules, placeholder
    )
    unused = candidate.plugin is not None and LIBRARIES not in expected  # nothing is left to load
    changing = bool(uninstall or install or requires)
    loaded = situation.package(LIBRARIES) is not None
    if not (changing or loaded) and _works_unloaded(candidate, system, situation):
        expected = {name: version for name, version in expected.items() if name != LIBRARIES}
    companions = _companions(expected, situation, changing=changing)
    if loaded or LIBRARIES in {companion.name for companion in companions}:
        of_wheels = {need.library for need in candidate.build.needs if need.distribution in wheels}
        system = {name: system[name] for name in system.keys() - of_wheels}
    return Changes(
        selection=selection,
        uninstall=(*uninstall, *([LIBRARIES] if unused and loaded else ())),
        install=sorted_by_name(install),
        companions=companions,
        placeholder=placeholder,
        requires=requires,
        system=system,
    )


def with_torch(changes: Changes, choice: TorchChoice) -> Changes:
    """Return `changes` with those for the chosen torch."""
    return changes._replace(
        selection=sorted_by_name((*changes.selection, *choice.wheels)),
        install=sorted_by_name((*changes.install, *choice.install)),
    )


def sorted_by_name(wheels: Iterable[Wheel]) -> tuple[Wheel, ...]:
    """Return `wheels` in the order in which a plan has them."""
    return tuple(sorted(wheels, key=lambda wheel: wheel.name))


def _companions(
    expected: Mapping[str, str], situation: Situation, *, changing: bool
) -> tuple[Companion, ...]:
    """Return the companions that are `expected` and not installed.

    They are installed with other changes; alone only if the interpreter is known to use them, and
    the placeholder only if a package requires onnxruntime.
    """
    missing: list[Companion] = []
    for name, version in expected.items():
        installed = situation.package(name)
        placeholder = name == PLACEHOLDER
        wished = situation.options.provide if placeholder else situation.options.autoload
        present = installed is not None and is_version_of(installed.version, version)
        if placeholder and installed is not None:
            present = present and installed.provided
        used = situation.facts.python.autoload is not None and (
            not placeholder or situation.environment.demanded(name)
        )
        if wished and not present and (changing or used):
            missing.append(Companion(name=name, version=version))
    return tuple(missing)


def _works_unloaded(
    candidate: Candidate, system: Mapping[str, Library], situation: Situation
) -> bool:
    """Return whether a program finds all libraries of `candidate` by itself, and shares no others.

    A torch in the same process loads the wheels, whose cuDNN and the system's would meet. What
    LD_LIBRARY_PATH names in this shell, a service does not find; where the driver is that of
    `--driver`, an image is checked, which has the variable for all that runs in it.
    """
    named = situation.facts.environment.get("LD_LIBRARY_PATH", "").split(":")
    of_image = situation.facts.sources.get("driver") == "--driver"
    of_shell = () if of_image else tuple(f"{path.rstrip('/')}/" for path in named if path)
    wanted = {need.library for need in candidate.build.needs if need.distribution}
    found = [system.get(library) for library in wanted]
    lasting = all(library and not (library.path or "").startswith(of_shell) for library in found)
    return lasting and (
        not situation.consumers or wanted <= lying_in_wheels(system, candidate, situation)
    )


def lying_in_wheels(
    system: Mapping[str, Library], candidate: Candidate, situation: Situation
) -> set[str]:
    """Return which of the libraries `system`, by name, lie in the kept wheels of `candidate`."""
    kept = [component.release for component in candidate.components.chosen if component.installed]
    rows = (libraries_of(situation.matrix.distributions[row.name], row) for row in kept)
    places = {name: path for row in rows if row for name, path in row.libraries.items()}
    return {
        name
        for name in system.keys() & places.keys()
        if (system[name].path or "").endswith(f"/{places[name]}")
    }


def _build_is_installed(candidate: Candidate, situation: Situation) -> bool:
    """Return whether the folder `onnxruntime` holds the whole build of `candidate`."""
    if situation.alternative_provider or candidate.plugin:
        return candidate.build.index_url == INSTALLED
    build = situation.facts.onnxruntime
    return (
        situation.installed_release == candidate.version
        and build is not None
        and build.intact
        and build.distribution in {None, GPU_BUILD}
        and build.version in {None, candidate.version}
        and is_same_major(candidate.build.cuda, build.cuda)
    )


def _wheel(component: Component) -> Wheel:
    release = component.release
    return wheel_on(release.index_url, release.name, release.version, release)


def _system_libraries(candidate: Candidate, situation: Situation) -> dict[str, Library]:
    """Return the needed libraries that the loader finds outside the wheels and that can serve."""
    # The loader takes the first of a name, whether it can serve or not.
    first = {library.name: library for library in reversed(situation.facts.libraries)}
    return {
        need.library: first[need.library]
        for need in candidate.build.needs
        if need.distribution
        and need.library in first
        and _serves(first[need.library], need, situation)
    }


def not_in_system(candidate: Candidate, situation: Situation) -> set[str]:
    """Return the wheels of `candidate` that the system does not stand in for.

    The others come only because a plan that installs some brings all of them.
    """
    system, needs = _system_libraries(candidate, situation), candidate.build.needs
    lacking = {need.distribution for need in needs if need.library not in system}
    served = {need.distribution for need in needs} - lacking
    wheels = {
        component.release.name: component.release for component in candidate.components.chosen
    }
    found, waiting = set[str](), [name for name in wheels if name in lacking]
    while waiting:
        name = waiting.pop()
        found.add(name)
        required = required_distributions(
            wheels[name], situation.matrix.distributions[name], situation
        )
        others = [other for other in required if other in wheels.keys() - served - found]
        waiting += [other for other in others if not _in_system(wheels[other], situation)]
    return found


def _in_system(release: Release, situation: Situation) -> bool:
    """Return whether the system has a library of `release`, which another one loads."""
    held = libraries_of(situation.matrix.distributions[release.name], release)
    return any(held and library.name in held.libraries for library in situation.facts.libraries)


def _serves(library: Library, need: LibraryNeed, situation: Situation) -> bool:
    """Return whether a system library is not known to be too old or to lack code for a GPU."""
    distribution = situation.matrix.distributions.get(need.distribution or "")
    if library.version is None or distribution is None:
        return True
    have = numbers(library.version)
    covering = code_of_file(library.version, distribution, situation.platform)
    if covering and all(
        gpu_without_code(code, distribution.name, situation, ptx=True) for code in covering
    ):
        return False
    floor = numbers(oldest_that_serves(need, situation) or "")
    return have[: len(floor)] >= floor[: len(have)]
