"""The steps from what is installed to a candidate's set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..companions.contents import STAND_IN, expected_companions
from ..facts.model import GPU_BUILD, Library
from ..matrix.model import LibraryNeed
from ..plan.wheels import Companion, Wheel, on_pypi
from ..versions import numbers
from .candidate import Candidate
from .components import Component
from .dependencies import missing_requirements
from .msvc import is_unfit
from .release_checks import gpu_without_code, oldest_that_serves
from .rules import rivals
from .situation import Situation
from .torch_choice import TorchChoice


class Changes(NamedTuple):
    """The difference between what is there and a candidate's set."""

    selection: tuple[Wheel, ...]
    """The whole set, what is kept included."""
    uninstall: tuple[str, ...]
    install: tuple[Wheel, ...]
    companions: tuple[Companion, ...]
    requires: tuple[str, ...]
    system: Mapping[str, Library]
    """The needed libraries that the loader finds outside the wheels, by name."""

    def __bool__(self) -> bool:
        """Tell whether anything is to be done."""
        return bool(self.uninstall or self.install or self.companions or self.requires)


def changes_for(subject: Candidate, here: Situation) -> Changes:
    """Return what has to be done so that the set of `subject` is what is installed."""
    owners = tuple(
        package.name
        for package in here.facts.packages
        if package.name in here.matrix.owners and package.name != GPU_BUILD and not package.provided
    )
    displaced = {
        rival
        for component in subject.components.chosen
        for rival in rivals(component.release.name, here)
        if here.facts.package(rival) is not None
    }
    assert subject.wheel is not None  # noqa: S101 - no candidate without a wheel passes the rules
    own = on_pypi(GPU_BUILD, subject.version, subject.wheel)
    install: list[Wheel] = []
    if owners or not _build_is_there(subject, here):
        install.append(own)
    system = _system_libraries(subject, here)
    lacking = [component for component in subject.components.chosen if not component.installed]
    served = all(
        need.library in system
        for need in subject.build.needs
        if need.distribution in {component.release.name for component in lacking}
    )
    # A set of the system's own libraries is left alone, but never completed: a plan that installs
    # brings all its wheels.
    runtime = subject.runtime if subject.runtime and not subject.runtime.installed else None
    unfit = runtime is not None and is_unfit(subject.build, here)
    if install or displaced or unfit or not served:
        brought = [*lacking, runtime] if runtime else lacking
        install.extend(_wheel(component) for component in brought)
        system = {}
    else:
        displaced = set()
    if isinstance(subject.numpy, Component):
        install.append(_wheel(subject.numpy))
    uninstall = tuple(sorted({*owners, *displaced}))
    requires = missing_requirements(subject.build, here)
    selection = _selection(subject, own, install, with_wheels=not system)
    return Changes(
        selection=selection,
        uninstall=uninstall,
        install=sorted_by_name(install),
        companions=_companions(selection, here, changing=bool(uninstall or install or requires)),
        requires=requires,
        system=system,
    )


def with_torch(changes: Changes, choice: TorchChoice) -> Changes:
    """Return `changes` with what has to be done for the torch that was chosen."""
    return changes._replace(
        selection=sorted_by_name((*changes.selection, *choice.wheels)),
        uninstall=tuple(sorted({*changes.uninstall, *choice.leaving})),
        install=sorted_by_name((*changes.install, *choice.install)),
    )


def sorted_by_name(wheels: Iterable[Wheel]) -> tuple[Wheel, ...]:
    """Return `wheels` in the order in which a plan has them."""
    return tuple(sorted(wheels, key=lambda wheel: wheel.name))


def _selection(
    subject: Candidate, own: Wheel, install: Sequence[Wheel], *, with_wheels: bool
) -> tuple[Wheel, ...]:
    """Return the whole set: its `own` wheel, what is there and stays, and all of `install`."""
    components = [
        component for component in subject.components.chosen if component.installed or with_wheels
    ]
    if subject.runtime is not None and subject.runtime.installed:
        components.append(subject.runtime)
    kept = [own, *(_wheel(component) for component in components)]
    wheels = {wheel.name: wheel for wheel in (*kept, *install)}
    return sorted_by_name(wheels.values())


def _companions(
    selection: tuple[Wheel, ...], here: Situation, *, changing: bool
) -> tuple[Companion, ...]:
    """Return the companions of `selection` that are not there.

    Where it is not known whether the interpreter would use them, and where nobody asks for
    onnxruntime by name, their absence alone is nothing to mend; they come with other changes.
    """
    known = here.facts.python.autoload is not None
    lacking: list[Companion] = []
    for name, version in expected_companions(
        selection, here.matrix, here.platform, here.matrix.modules
    ).items():
        installed = here.facts.package(name)
        stand_in = name == STAND_IN
        wished = here.options.provide if stand_in else here.options.autoload
        there = (
            installed is not None
            and installed.version == version
            and (installed.provided or not stand_in)
        )
        missed = known and (not stand_in or bool(here.demanded(name)))
        if wished and not there and (changing or missed):
            lacking.append(Companion(name=name, version=version))
    return tuple(lacking)


def _build_is_there(subject: Candidate, here: Situation) -> bool:
    """Tell whether the shared folder really holds the whole build of `subject`."""
    installed = here.facts.package(GPU_BUILD)
    build = here.facts.onnxruntime
    return (
        installed is not None
        and installed.version == subject.version
        and build is not None
        and build.intact
        and build.distribution in {None, GPU_BUILD}
        and build.version in {None, subject.version}
    )


def _wheel(component: Component) -> Wheel:
    return on_pypi(component.release.name, component.release.version, component.release)


def _system_libraries(subject: Candidate, here: Situation) -> dict[str, Library]:
    """Return the needed libraries that the loader finds outside the wheels and that can serve."""
    found: dict[str, Library] = {}
    for need in subject.build.needs:
        for library in here.facts.libraries:
            if need.distribution and library.name == need.library:
                if _serves(library, need, here):
                    found[need.library] = library
                break  # the loader takes the first of that name, good or not
    return found


def _serves(library: Library, need: LibraryNeed, here: Situation) -> bool:
    """Tell whether a system library is new enough, and has code for the GPUs here.

    One of unknown version counts as so.
    """
    distribution = here.matrix.distributions.get(need.distribution or "")
    if library.version is None or distribution is None:
        return True
    have = numbers(library.version)
    covering = [
        code
        for code in distribution.code
        if code.platform == here.platform
        and numbers(code.first)[: len(have)] <= have
        and have[: len(numbers(code.last))] <= numbers(code.last)[: len(have)]
    ]
    if covering and all(
        gpu_without_code(code, distribution.name, here, ptx=True) for code in covering
    ):
        return False
    floor = oldest_that_serves(need, here)
    if floor is None:
        return True
    wanted = numbers(floor)
    length = min(len(have), len(wanted))
    return have[:length] >= wanted[:length]
