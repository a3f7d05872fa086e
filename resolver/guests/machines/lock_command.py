"""`lock` for several facts files: one lock for each group."""

from __future__ import annotations

from collections.abc import Mapping

from ...cli.commands.lock import lock_groups
from ...cli.commands.plan import VERDICT_EXIT
from ...cli.lock_inputs import PlannedGroups
from ...cli.options import plan_options_of
from ...cli.requests import PlanRequest
from ...matrix.load import load_matrix
from ...messages.catalog import Language
from .guest import SeveralLockRequest
from .plan_command import plan_machines, print_fleet_plan


def run(request: SeveralLockRequest, environ: Mapping[str, str], language: Language) -> int:
    """Lock what all machines need. Raises as `groups_of` and `lock_groups`."""
    planned = groups_of(request.lock.preferred, language, with_cpu=request.with_cpu)
    if isinstance(planned, int):
        return planned
    return lock_groups(planned, request.lock, environ, language)


def groups_of(asked: PlanRequest, language: Language, *, with_cpu: bool) -> PlannedGroups | int:
    """Return what all machines need; where nothing works on one, show that: the exit code.

    Raises as `plan_machines`.
    """
    fleet = plan_machines(asked, with_cpu=with_cpu)
    if not fleet.complete:
        print_fleet_plan(fleet, asked, language)
        return VERDICT_EXIT["impossible"]
    return PlannedGroups(fleet.groups, plan_options_of(asked), load_matrix())
