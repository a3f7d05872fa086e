"""The resolver: facts, options and matrix give the plan for one machine.

The same three give the same plan, byte for byte. An installed onnxruntime-gpu that can work here is
kept and completed; otherwise the newest that can work is chosen, of those with the CUDA that
everything else here uses if there are any.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..facts.model import Facts
from ..matrix.model import INSTALLED, Build, Matrix
from ..plan.model import OtherWay, Plan, PlanVerdict, Rejected
from ..plan.reasons import Named, reason
from ..versions import major, newest_first
from .candidate import Candidate, make_candidate
from .changes import Changes, changes_for, sorted_by_name, with_torch
from .components import Components, Picked, SharingMachines
from .findings import findings, findings_around
from .options import RTX, PlanOptions
from .plugins import with_plugins
from .rules import is_usable, reasons_against, reasons_for
from .situation import Situation, situation
from .smallest import smallest_components
from .torch_choice import (
    TorchChoice,
    TorchSearch,
    Works,
    chooses_torch,
    search_torch,
    why_torch,
    without_torch,
)
from .torch_wheels import kept_torch
from .unknown_releases import is_same_major, with_installed_releases
from .unlock import Gain, unlock


def resolve(facts: Facts, options: PlanOptions, matrix: Matrix, *, unlocking: bool = True) -> Plan:
    """Return the plan for the machine and environment of `facts`.

    What installed packages demand is let go, where that is allowed, only if nothing works with it:
    so a plan that tells of a conflict is made again as it is when the conflict is allowed.
    `unlocking` False leaves out the unlocks: they take longer than all the rest.
    """
    if options.conflicts:
        strict = resolve(facts, options._replace(conflicts=False), matrix, unlocking=unlocking)
        if strict.verdict != "impossible":
            return strict
    matrix, unknown = with_installed_releases(facts, matrix, options)
    here = situation(facts, options, with_plugins(facts, matrix, options))
    search = _find_torch(here) if chooses_torch(here) else None
    choice = search.choice if search else None
    there = choice.there if choice else here
    tried = there if choice or search is None else without_torch(here)
    judged = [(subject, reasons_against(subject, tried)) for subject in _candidates(tried)]
    if search is not None and choice is None:
        none = reason("torch-none-fits", wish=f"--torch {options.torch.removeprefix('==')}")
        judged = [(subject, reasons or (none,)) for subject, reasons in judged]
    working = [subject for subject, reasons in judged if not reasons]
    best, less = _preferred(working, there), 0
    other_way = best is not None and here.is_other_way(best.build)
    if best is not None and not other_way:
        best, less = with_preferred_wheels(best, there)
    unread = best is not None and best.build.index_url == INSTALLED and not other_way
    rejected = tuple(
        Rejected(package=who.name, version=who.version, reasons=reasons)
        for subject, reasons in judged
        if reasons and not (unread and best and subject.version == best.version)  # PyPI's own
        for who in [here.judged(subject.build)]
    )
    changes = None if best is None else changes_for(best, there)
    if changes is not None and choice is not None:
        changes = with_torch(changes, choice)
    kept = kept_torch(here) if choice is None else ()
    return Plan(
        verdict=_verdict(changes, facts),
        findings=findings(here, best, changes, rejected, working, search=search, unknown=unknown),
        why=() if best is None else (*reasons_for(best, there), *why_torch(here, choice)),
        cuda=None if best is None else major(best.build.cuda),
        selection=() if changes is None else sorted_by_name((*changes.selection, *kept)),
        uninstall=changes.uninstall if changes else (),
        install=changes.install if changes else (),
        less=less,
        small=options.small,
        companions=changes.companions if changes else (),
        requires=changes.requires if changes else (),
        consumers=here.consumers,
        rejected=(*(search.rejected if search else ()), *rejected),
        unlock=unlock(here, working, rejected, partial(_newest_that_works, matrix), _torches_to_try)
        if unlocking and not other_way and (best is None or options.provider != RTX)
        else (),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
        matrix_added=matrix.added,
    )


def with_preferred_wheels(best: Candidate, here: Situation) -> tuple[Candidate, int]:
    """Return `best` with the nvidia wheels that the options prefer.

    And the bytes by which `small` downloads less than the usual wheels, where they download any.
    """
    usual = best.components.chosen
    machines = SharingMachines((here,), here.demands, {})
    smaller = best._replace(
        components=Components(smallest_components(best.build, machines, usual), reasons=())
    )
    sizes = [
        sum(wheel.size or 0 for wheel in changes_for(each, here).install)
        for each in (best, smaller)
    ]
    return smaller if here.options.small else best, sizes[0] - sizes[1]


def other_ways(facts: Facts, options: PlanOptions, matrix: Matrix) -> tuple[OtherWay, ...]:
    """Return the ways that `options` do not ask for, which work here and are not installed."""
    if options.provider != "cuda":
        return ()
    made = resolve(facts, options._replace(provider=RTX), matrix, unlocking=False)
    names = {row.name: row for row in made.selection}
    plugin = next((row for name, row in names.items() if name in matrix.plugins), None)
    if made.verdict != "fixable" or plugin is None or facts.package(plugin.name):
        return ()
    size = sum(wheel.size for wheel in made.install)
    return (OtherWay(provider=RTX, by=Named(plugin.name, plugin.version), size=size),)


def resolve_for_check(facts: Facts, options: PlanOptions, matrix: Matrix) -> Plan:
    """Return the plan as far as `--check` needs it: its verdict, and what is wrong around.

    The first release that works tells the verdict: the installed one has changes or none, and any
    other has to be installed.
    """
    if options.conflicts:
        strict = resolve_for_check(facts, options._replace(conflicts=False), matrix)
        if strict.verdict != "impossible":
            return strict
    installed, _ = with_installed_releases(facts, matrix, options)
    here = situation(facts, options, with_plugins(facts, installed, options))
    if chooses_torch(here):
        return resolve(facts, options, matrix, unlocking=False)
    builds = _builds(here)
    if not options.latest:
        builds.sort(key=lambda build: not is_installed(build, here))
    best = next((build for build in builds if is_usable(build, here)), None)
    changes = None if best is None else changes_for(make_candidate(best, here), here)
    return Plan(
        verdict=_verdict(changes, facts),
        findings=findings_around(here, best),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
    )


def _verdict(changes: Changes | None, facts: Facts) -> PlanVerdict:
    if changes is None:
        return "impossible"
    unfinished = facts.python.change == "unfinished"  # `--apply` rolls it back first
    return "fixable" if changes or unfinished else "healthy"


def _torches_to_try(here: Situation) -> Iterator[TorchChoice]:
    """Yield the torch to take, then the nearest one with which a newer onnxruntime-gpu works."""
    nearest = _find_torch(here).choice
    if nearest is None:
        return
    yield nearest
    works = _works_with_torch(here)
    now = newest_first(nearest.build.version)
    for build in [build for build in _builds(here) if newest_first(build.version) > now]:
        farther = search_torch(here, [build], works).choice
        if farther is not None:
            yield farther
            return


def _find_torch(here: Situation) -> TorchSearch:
    builds = _builds(here)
    if here.installed_release is not None and not here.options.latest:
        builds.sort(key=lambda build: build.version != here.installed_release)
    return search_torch(here, builds, _works_with_torch(here))


def _works_with_torch(here: Situation) -> Works:
    """Return the function that tells whether a build works in a situation with some torch.

    A build that does not work without torch is not tried again with each.
    """
    bare = without_torch(here)
    able: dict[str, bool] = {}

    def works(build: Build, there: Situation) -> bool:
        if build.version not in able:
            able[build.version] = is_usable(build, bare)
        return able[build.version] and is_usable(build, there)

    return works


def _candidates(here: Situation) -> list[Candidate]:
    picked: Picked = {}
    return [make_candidate(build, here, picked=picked) for build in _builds(here)]


def _newest_that_works(matrix: Matrix, here: Situation, above: str | None) -> Gain | None:
    """Return the newest release that works, above `above`; or None.

    `matrix` is the one without the builds of plugins, which are others for another machine.
    """
    builds_here = with_plugins(here.facts, matrix, here.options)
    if builds_here is not here.matrix:
        here = situation(here.facts, here.options, builds_here)
    if chooses_torch(here):
        choice = _find_torch(here).choice
        builds = [choice.build] if choice else []
    else:
        builds = _builds(here)
    for build in builds:
        if here.is_other_way(build):  # it is there already
            continue
        if above is not None and newest_first(build.version) <= newest_first(above):
            return None
        if chooses_torch(here) or is_usable(build, here):
            judged = here.judged(build)
            named = Named(judged.name, judged.version)
            return Gain(named, latest=not _is_taken(build, here))
    return None


def _is_taken(build: Build, here: Situation) -> bool:
    """Tell whether a plan takes `build`, the newest that works: `_preferred` has none before it."""
    if here.options.latest or is_installed(build, here):
        return True
    alike = [] if _shares_cuda(build, here) else [build.cudnn]
    before = (
        row
        for row in _builds(here)
        if is_installed(row, here) or (row.cudnn in alike and _shares_cuda(row, here))
    )
    return not any(is_usable(row, here) for row in before)


def _builds(here: Situation) -> list[Build]:
    """Return a build for each release, newest first: this platform's where there is one."""
    chosen: dict[tuple[object, ...], Build] = {}
    for build in here.matrix.builds:
        key = build.version, build.index_url, build.plugin
        if key not in chosen or build.platform == here.platform:
            chosen[key] = build
    return sorted(chosen.values(), key=lambda build: newest_first(build.version), reverse=True)


def _preferred(works: list[Candidate], here: Situation) -> Candidate | None:
    """Return the installed release if it works, else the newest; one CUDA for all goes first.

    That is worth no release with an older cuDNN: those are the ones up to 1.18.
    """
    able = works
    if not here.options.latest:
        if not here.options.conflicts:
            newest = [row for row in works if row.build.cudnn == works[0].build.cudnn]
            able = [row for row in newest if _shares_cuda(row.build, here)] or works
        able = [row for row in works if is_installed(row.build, here)] or able
    return able[0] if able else None


def is_installed(build: Build, here: Situation) -> bool:
    """Tell whether `build` is the one of the installed onnxruntime-gpu, whole or not."""
    if build.plugin:
        return build.index_url == INSTALLED
    if here.other_way or build.version != here.installed_release:
        return here.is_other_way(build)
    folder = here.facts.onnxruntime
    return folder is None or is_same_major(build.cuda, folder.cuda)


def _shares_cuda(build: Build, here: Situation) -> bool:
    """Tell whether everything else here that uses CUDA uses the major of `build`."""
    return all(row.cuda in {None, major(build.cuda)} for row in here.consumers)
