"""`--check`: say in one line, and by the exit code, whether the environment is OK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...messages.catalog import Language, load_texts
from ...plan.model import Plan
from ...report.check import check_line
from ...resolve.cases import checked_plan
from .. import console
from ..command_line import typed_command
from ..inputs import gather_inputs
from ..requests import CheckRequest
from .plan import plan_exit_code


class CheckedPlan(NamedTuple):
    """A plan as far as a check needs it, and its machine, where there are several."""

    plan: Plan
    machine: str = ""


def run(asked: CheckRequest, environ: Mapping[str, str], language: Language) -> int:
    """Say whether the environment is OK."""
    inputs = gather_inputs(asked.plan, environ)
    checked = checked_plan(inputs.facts, inputs.options, inputs.matrix)
    return report_check([CheckedPlan(checked)], asked, language)


def report_check(plans: Iterable[CheckedPlan], asked: CheckRequest, language: Language) -> int:
    """Return the exit code of the worst of `plans`, and print a line, or the document, of it."""
    worst = max(plans, key=lambda each: plan_exit_code(each.plan))
    if asked.plan.json:
        console.print_json({"schema": 1, "verdict": worst.plan.verdict})
    elif not asked.quiet:
        texts = load_texts(language, typed_command(asked.plan.options))
        console.print_result(check_line(worst.plan, worst.machine, texts))
    return plan_exit_code(worst.plan)
