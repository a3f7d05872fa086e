"""`--check` of several facts files."""

from __future__ import annotations

from collections.abc import Mapping

from ...cli.commands.check import CheckedPlan, report_check
from ...cli.options import plan_options_of
from ...cli.requests import CheckRequest
from ...matrix.load import load_matrix
from ...messages.catalog import Language
from ...resolve.cases import checked_plan
from .plan_command import machines_in


def run(request: CheckRequest, environ: Mapping[str, str], language: Language) -> int:
    """Say how the worst of the machines and their environments is. Raises as `machines_in`."""
    del environ
    options, matrix = plan_options_of(request.plan), load_matrix()
    machines = machines_in(request.plan.machine.several)
    kinds = {id(machine.facts): machine for machine in machines}.values()
    plans = [CheckedPlan(checked_plan(each.facts, options, matrix), each.name) for each in kinds]
    return report_check(plans, request, language)
