"""The resolver: facts, options and matrix give the plan for one machine.

The same three give the same plan, byte for byte. An installed onnxruntime-gpu that can work here is
kept and completed; otherwise the newest that can work is chosen, of those with the CUDA that
everything else here uses if there are any.
"""

from __future__ import annotations

from ..facts.model import Facts
from ..matrix.model import INSTALLED, Matrix
from ..plan.model import Alternative, Plan, PlanVerdict, Rejected
from ..plan.reasons import Named, reason
from ..versions import major
from .applications import unused_by
from .candidate import Candidate, make_candidate
from .changes import Changes, changes_for, sorted_by_name, with_torch
from .choice import (
    builds_of,
    find_torch,
    is_installed,
    least_conflicting,
    preferred,
    with_preferred_wheels,
)
from .combinations import Judged
from .components import Picked
from .findings import findings, findings_around
from .options import RTX, PlanOptions
from .orphans import with_orphans
from .plugins import with_plugins
from .rules import Judgement, is_usable, judge, reasons_for
from .situation import Situation, situation_of
from .torch_choice import TorchSearch, chooses_torch, why_torch, without_torch
from .torch_wheels import kept_torch
from .unknown_releases import with_installed_releases
from .unlock import unlock


def resolve(facts: Facts, options: PlanOptions, matrix: Matrix, *, unlocking: bool = True) -> Plan:
    """Return the plan for the machine and environment of `facts`.

    What installed packages demand is let go, where that is allowed, only if nothing works with it:
    so a plan that reports a conflict is made again with the conflict allowed.
    `unlocking` False leaves out the unlocks: they take longer than all the rest.
    """
    if options.conflicts:
        strict = resolve(facts, options._replace(conflicts=False), matrix, unlocking=unlocking)
        if strict.verdict != "impossible":
            return strict
    return resolve_as_asked(facts, options, matrix, unlocking=unlocking)


def resolve_as_asked(
    facts: Facts, options: PlanOptions, matrix: Matrix, *, unlocking: bool
) -> Plan:
    """Return the plan of `resolve` where nothing works without what `options` lets go."""
    matrix, unknown = with_installed_releases(facts, matrix, options)
    situation = situation_of(facts, options, with_plugins(facts, matrix, options))
    search = find_torch(situation) if chooses_torch(situation) else None
    choice = search.choice if search else None
    planned = choice.situation if choice else situation

    judged = _judge_all(situation, planned, search)
    working = [candidate for candidate, reasons in judged if not reasons]
    able = least_conflicting(working, planned)
    best, bytes_saved = preferred(able, planned), 0
    alternative_provider = best is not None and situation.uses_alternative_provider(best.build)
    if best is not None and not alternative_provider:
        best, bytes_saved = with_preferred_wheels(best, planned)

    changes = None if best is None else changes_for(best, planned)
    if changes is not None and choice is not None:
        changes = with_torch(changes, choice)
    if best is not None and changes is not None:
        changes = with_orphans(changes, best, situation, planned)

    rejections = [(one.build, _rejected(one, why, situation)) for one, why in judged if why]
    if best is not None and best.build.index_url == INSTALLED and not alternative_provider:
        rejections = [
            row for row in rejections if row[1].version != best.version
        ]  # PyPI's own of that number
    rejected = tuple(row for _, row in rejections)
    found = findings(situation, best, changes, rejected, able, search=search, unknown=unknown)
    unlocking = unlocking and not alternative_provider and (best is None or options.provider != RTX)
    newest = working[0].version if working else None
    kept = kept_torch(situation) if choice is None else ()
    gone = changes.uninstall if changes else ()
    return Plan(
        verdict=_verdict(changes, facts),
        findings=found,
        why=() if best is None else (*reasons_for(best, planned), *why_torch(situation, choice)),
        cuda=None if best is None else major(best.build.cuda),
        selection=() if changes is None else sorted_by_name((*changes.selection, *kept)),
        uninstall=gone,
        install=changes.install if changes else (),
        bytes_saved=bytes_saved,
        small=options.small,
        companions=changes.companions if changes else (),
        placeholder="" if changes is None else changes.placeholder,
        requires=changes.requires if changes else (),
        consumers=tuple(consumer for consumer in situation.consumers if consumer.name not in gone),
        unused_by=unused_by(situation),
        rejected=(*(search.rejected if search else ()), *rejected),
        considered=tuple(dict.fromkeys(one.version for one, _ in judged)),
        unlock=unlock(situation, Judged(newest, rejections), matrix) if unlocking else (),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
        matrix_added=matrix.added,
    )


def _judge_all(
    situation: Situation, planned: Situation, search: TorchSearch | None
) -> list[tuple[Candidate, Judgement]]:
    """Return a candidate for each release, newest first, with what speaks against it.

    Judged beside the torch that was found; where a search found none, beside none.
    """
    unfound = search is not None and search.choice is None
    tried = without_torch(situation) if unfound else planned
    picked: Picked = {}
    judged = [
        (candidate, judge(candidate, tried))
        for candidate in (make_candidate(build, tried, picked=picked) for build in builds_of(tried))
    ]
    if not unfound:
        return judged
    none = reason("torch-none-fits", wish=f"--torch {situation.options.torch.removeprefix('==')}")
    return [(one, why or Judgement((), (none,))) for one, why in judged]


def _rejected(candidate: Candidate, why: Judgement, situation: Situation) -> Rejected:
    who = situation.judged(candidate.build)
    return Rejected(who.name, who.version, machine=why.machine, environment=why.environment)


def alternatives(facts: Facts, options: PlanOptions, matrix: Matrix) -> tuple[Alternative, ...]:
    """Return the providers that `options` do not ask for, which work here and are not installed."""
    if options.provider != "cuda":
        return ()
    made = resolve(facts, options._replace(provider=RTX), matrix, unlocking=False)
    names = {wheel.name: wheel for wheel in made.selection}
    plugin = next((wheel for name, wheel in names.items() if name in matrix.plugins), None)
    if made.verdict != "fixable" or plugin is None or facts.package(plugin.name):
        return ()
    size = sum(wheel.size for wheel in made.install)
    return (Alternative(provider=RTX, by=Named(plugin.name, plugin.version), size=size),)


def resolve_for_check(facts: Facts, options: PlanOptions, matrix: Matrix) -> Plan:
    """Return the plan as far as `--check` needs it: its verdict, and what is wrong around.

    The first version that works decides the verdict: the installed one has changes or none, and any
    other has to be installed.
    """
    if options.conflicts:
        strict = resolve_for_check(facts, options._replace(conflicts=False), matrix)
        if strict.verdict != "impossible":
            return strict
    installed, _ = with_installed_releases(facts, matrix, options)
    situation = situation_of(facts, options, with_plugins(facts, installed, options))
    if chooses_torch(situation) or options.conflicts:
        return resolve_as_asked(facts, options, matrix, unlocking=False)
    builds = builds_of(situation)
    if not options.latest:
        builds.sort(key=lambda build: not is_installed(build, situation))
    best = next((build for build in builds if is_usable(build, situation)), None)
    changes = None if best is None else changes_for(make_candidate(best, situation), situation)
    return Plan(
        verdict=_verdict(changes, facts),
        findings=findings_around(situation, best),
        matrix_date=matrix.date,
        matrix_digest=matrix.digest,
    )


def _verdict(changes: Changes | None, facts: Facts) -> PlanVerdict:
    if changes is None:
        return "impossible"
    unfinished = facts.python.change == "unfinished"  # `--apply` rolls it back first
    return "fixable" if changes or unfinished else "healthy"
