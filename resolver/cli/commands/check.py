"""`--check`: tell by the exit code alone whether the environment is right."""

from __future__ import annotations

from collections.abc import Mapping

from ...messages.catalog import Language
from ...resolve.resolver import resolve_for_check
from ..flags import CommandLine
from ..inputs import gather_inputs
from .plan import plan_exit_code


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Tell by the exit code alone whether the environment is right."""
    del language
    inputs = gather_inputs(arguments, environ)
    return plan_exit_code(resolve_for_check(inputs.facts, inputs.options, inputs.matrix))
