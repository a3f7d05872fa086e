"""`lock` and `download` for several facts files: one lock, or one set of wheels, for each group."""

from __future__ import annotations

from collections.abc import Mapping

from ...cli.commands.download import download_groups
from ...cli.commands.lock import lock_groups
from ...cli.commands.plan import VERDICT_EXIT
from ...cli.flags import CommandLine
from ...cli.lock_inputs import PlannedGroups
from ...cli.options import plan_options_of
from ...matrix.load import load_matrix
from ...messages.catalog import Language
from .plan_command import plan_machines, print_fleet_plan


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Lock or download what all machines need; where nothing works on one, show that.

    Raises as `plan_machines`, and as `lock_groups` or `download_groups`.
    """
    fleet = plan_machines(arguments)
    if not fleet.complete:
        print_fleet_plan(fleet, arguments, language)
        return VERDICT_EXIT["impossible"]
    planned = PlannedGroups(fleet.groups, plan_options_of(arguments), load_matrix())
    do = lock_groups if arguments.named == "lock" else download_groups
    return do(planned, arguments, environ, language)
