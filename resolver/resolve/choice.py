"""Which release a plan takes, which torch with it, and of several wheels those preferred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..matrix.model import INSTALLED, Build, Matrix
from ..plan.reasons import Named
from ..versions import major, newest_first
from .candidate import Candidate
from .changes import changes_for
from .components import Components, SharingMachines
from .plugins import with_plugins
from .rules import is_usable, judge
from .situation import Situation, changed, situation_of
from .smallest import smallest_components
from .torch_choice import (
    TorchChoice,
    TorchSearch,
    Works,
    chooses_torch,
    search_torch,
    without_torch,
)
from .unknown_releases import is_same_major


class Gain(NamedTuple):
    """What has the provider in the newest release that works."""

    build: Named
    """onnxruntime-gpu, or a plugin."""
    latest: bool
    """Only `--ort latest` takes it."""


def builds_of(situation: Situation) -> list[Build]:
    """Return a build for each release, newest first: this platform's where there is one."""
    chosen: dict[tuple[object, ...], Build] = {}
    for build in situation.matrix.builds:
        key = build.version, build.index_url, build.plugin
        if key not in chosen or build.platform == situation.platform:
            chosen[key] = build
    return sorted(chosen.values(), key=lambda build: newest_first(build.version), reverse=True)


def preferred(works: list[Candidate], situation: Situation) -> Candidate | None:
    """Return the installed release if it works, else the newest; one CUDA for all goes first.

    That is worth no release with an older cuDNN: those are the ones up to 1.18.
    """
    able = works
    if not situation.options.latest:
        if not situation.options.conflicts:
            newest = [
                candidate for candidate in works if candidate.build.cudnn == works[0].build.cudnn
            ]
            able = [
                candidate for candidate in newest if _shares_cuda(candidate.build, situation)
            ] or works
        able = [
            candidate for candidate in works if is_installed(candidate.build, situation)
        ] or able
    return able[0] if able else None


def least_conflicting(works: list[Candidate], situation: Situation) -> list[Candidate]:
    """Return those that break the fewest requirements, where conflicts are allowed; else all."""
    if not situation.options.conflicts:
        return works
    strict = changed(situation, options=situation.options._replace(conflicts=False))
    broken = [len(judge(one, strict).environment) for one in works]
    return [one for one, count in zip(works, broken, strict=True) if count == min(broken)]


def with_preferred_wheels(best: Candidate, situation: Situation) -> tuple[Candidate, int]:
    """Return `best` with the nvidia wheels that the options prefer.

    And the bytes by which `small` downloads less than the usual wheels, where they download any.
    """
    usual = best.components.chosen
    machines = SharingMachines((situation,), situation.demands, {})
    smaller = best._replace(components=Components(smallest_components(best.build, machines, usual)))
    sizes = [
        sum(wheel.size or 0 for wheel in changes_for(each, situation).install)
        for each in (best, smaller)
    ]
    return smaller if situation.options.small else best, sizes[0] - sizes[1]


def is_installed(build: Build, situation: Situation) -> bool:
    """Return whether `build` is the one of the installed onnxruntime-gpu, whole or not."""
    if build.plugin:
        return build.index_url == INSTALLED
    if situation.alternative_provider or build.version != situation.installed_release:
        return situation.uses_alternative_provider(build)
    folder = situation.facts.onnxruntime
    return folder is None or is_same_major(build.cuda, folder.cuda)


def _shares_cuda(build: Build, situation: Situation) -> bool:
    """Return whether everything else here that uses CUDA uses the major of `build`."""
    return all(consumer.cuda in {None, major(build.cuda)} for consumer in situation.consumers)


def find_torch(situation: Situation) -> TorchSearch:
    """Return the search for the torch that the options ask for."""
    builds = builds_of(situation)
    if situation.installed_release is not None and not situation.options.latest:
        builds.sort(key=lambda build: build.version != situation.installed_release)
    return search_torch(situation, builds, _works_with_torch(situation))


def torches_to_try(situation: Situation) -> Iterator[TorchChoice]:
    """Yield the torch to take, then the nearest one with which a newer onnxruntime-gpu works."""
    nearest = find_torch(situation).choice
    if nearest is None:
        return
    yield nearest
    now, bare = newest_first(nearest.build.version), without_torch(situation)
    newer = [build for build in builds_of(situation) if newest_first(build.version) > now]
    for build in [build for build in newer if is_usable(build, bare)]:
        farther = search_torch(situation, [build], is_usable).choice
        if farther is not None:
            yield farther
            return


def _works_with_torch(situation: Situation) -> Works:
    """Return the function that checks whether a build works in a situation with some torch.

    A build that does not work without torch is not tried again with each.
    """
    bare = without_torch(situation)
    able: dict[str, bool] = {}

    def works(build: Build, situation: Situation) -> bool:
        if build.version not in able:
            able[build.version] = is_usable(build, bare)
        return able[build.version] and is_usable(build, situation)

    return works


def newest_that_works(situation: Situation, above: str | None, matrix: Matrix) -> Gain | None:
    """Return the newest release that works, above `above`; or None.

    `matrix` is the one without the builds of plugins, which are others for another machine.
    """
    with_plugin_builds = with_plugins(situation.facts, matrix, situation.options)
    if with_plugin_builds is not situation.matrix:
        situation = situation_of(situation.facts, situation.options, with_plugin_builds)
    if chooses_torch(situation):
        choice = find_torch(situation).choice
        builds = [choice.build] if choice else []
    else:
        builds = builds_of(situation)
    for build in builds:
        if situation.uses_alternative_provider(build):  # it is there already
            continue
        if above is not None and newest_first(build.version) <= newest_first(above):
            return None
        if chooses_torch(situation) or is_usable(build, situation):
            judged = situation.judged(build)
            named = Named(judged.name, judged.version)
            return Gain(named, latest=not _is_taken(build, situation))
    return None


def _is_taken(build: Build, situation: Situation) -> bool:
    """Return whether a plan takes `build`, the newest that works: `preferred` has none before."""
    if situation.options.latest or is_installed(build, situation):
        return True
    alike = [] if _shares_cuda(build, situation) else [build.cudnn]
    before = (
        other
        for other in builds_of(situation)
        if is_installed(other, situation)
        or (other.cudnn in alike and _shares_cuda(other, situation))
    )
    return not any(is_usable(other, situation) for other in before)
