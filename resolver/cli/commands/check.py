"""`--check`: tell by the exit code whether the environment is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...messages.catalog import Language
from ...plan.model import Plan
from ...resolve.cases import checked_plan
from .. import console
from ..flags import CommandLine
from ..inputs import gather_inputs
from .plan import plan_exit_code


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Tell by the exit code whether the environment is right; as JSON the verdict, too."""
    del language
    inputs = gather_inputs(arguments, environ)
    return tell([checked_plan(inputs.facts, inputs.options, inputs.matrix)], arguments)


def tell(plans: Iterable[Plan], arguments: CommandLine) -> int:
    """Return the exit code of the worst of `plans`, and print its verdict where JSON is wanted."""
    worst = max(plans, key=plan_exit_code)
    if arguments.json:
        console.print_json({"schema": 1, "verdict": worst.verdict})
    return plan_exit_code(worst)
