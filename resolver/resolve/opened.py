"""The plan that a user gets: where nothing works otherwise, the one that a flag allows.

torch stays and packages keep their say unless the user says otherwise. What one of these flags
makes possible is not impossible: the plan is made with it, and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..facts.model import Facts
from ..matrix.model import Matrix
from ..matrix.torch import TORCH
from ..plan.model import Need, Plan
from .options import PlanOptions
from .resolver import resolve, resolve_as_asked, resolve_for_check

_SAID_BY_NEEDS = {"allow-conflicts", "match-torch"}
"""The unlocks that are the flags."""


def plan_for(facts: Facts, options: PlanOptions, matrix: Matrix, *, unlocking: bool = True) -> Plan:
    """Return the plan of `resolve`; where nothing works otherwise, with the flags it needs.

    Its rejected releases are those that nothing works with without the flags.
    """
    strict = resolve(facts, options, matrix, unlocking=unlocking)
    # What is strict was tried: only a wish for conflicts of the user's own is let go later again.
    again = resolve if options.conflicts else resolve_as_asked
    made = _opened(
        strict, facts, options, lambda asked: again(facts, asked, matrix, unlocking=False)
    )
    if made is strict:
        return strict
    others = tuple(
        unlocked for unlocked in strict.unlock if unlocked.change.code not in _SAID_BY_NEEDS
    )
    return made._replace(rejected=strict.rejected, considered=strict.considered, unlock=others)


def plan_for_check(facts: Facts, options: PlanOptions, matrix: Matrix) -> Plan:
    """Return the plan of `plan_for` as far as `--check` needs it."""
    checked = resolve_for_check(facts, options, matrix)
    if checked.verdict != "impossible":
        return checked
    strict = resolve(facts, options, matrix, unlocking=False)
    return _opened(strict, facts, options, lambda asked: resolve_for_check(facts, asked, matrix))


def _opened(
    strict: Plan, facts: Facts, options: PlanOptions, make: Callable[[PlanOptions], Plan]
) -> Plan:
    """Return the plan with the fewest flags that opens the way; `strict` where none does."""
    if strict.verdict == "impossible" and strict.works_beside is not None:
        for asked, needs in _flags(facts, options):
            made = make(asked)
            if made.verdict == "healthy":  # what is unmet was so before, and nothing is to be done
                return made
            if made.verdict == "fixable":
                return made._replace(needs=needs)
    return strict


def _flags(facts: Facts, options: PlanOptions) -> Iterator[tuple[PlanOptions, tuple[Need, ...]]]:
    moving = options._replace(torch="match")
    moves = options.torch == "keep" and facts.package(TORCH) is not None
    if moves:
        yield moving, ("torch",)
    if not options.conflicts:
        yield options.with_conflicts, ("conflicts",)
        if moves:
            yield moving.with_conflicts, ("torch", "conflicts")
