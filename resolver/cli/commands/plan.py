"""The command that runs without a name: diagnose, and print the plan."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...messages.catalog import Language, load_texts
from ...plan.model import Plan
from ...resolve.resolver import resolve
from .. import console
from ..inputs import PlanInputs, gather_inputs

if TYPE_CHECKING:  # it takes part of what a plan without `-r` takes
    from ...requirements.rewrite import Edit

VERDICT_EXIT = {"healthy": 0, "fixable": 1, "impossible": 3}


def run(arguments: argparse.Namespace, environ: Mapping[str, str], language: Language) -> int:
    """Diagnose, and print the plan."""
    inputs = gather_inputs(arguments, environ)
    made = resolve(inputs.facts, inputs.options, inputs.matrix)
    print_plan(made, inputs, arguments, language)
    return VERDICT_EXIT[made.verdict]


def print_plan(
    made: Plan, inputs: PlanInputs, arguments: argparse.Namespace, language: Language
) -> None:
    """Print a plan, for people or as JSON."""
    from ...report.plan import plan_json, plan_sections

    edits = _edits(made, inputs, arguments) if arguments.requirement else []
    if arguments.json:
        document = plan_json(made, load_texts("en"))
        if edits:
            from ...report.requirements import requirements_json

            document["requirements"] = requirements_json(edits)
        console.print_json(document)
        return
    texts = load_texts(language)
    asked = inputs.options.chooses
    sections = plan_sections(made, inputs.facts, texts, verbose=arguments.verbose, asked=asked)
    if edits:
        from ...report.requirements import requirements_section

        sections = (*sections[:-1], requirements_section(edits, texts, written=False), sections[-1])
    console.print_sections(sections)


def _edits(made: Plan, inputs: PlanInputs, arguments: argparse.Namespace) -> list[tuple[str, Edit]]:
    """Return what should become of the lines of the files that `-r` names."""
    from ..requirements import rewritten_for_plan

    found = rewritten_for_plan(made, inputs, arguments)
    return [(str(file.path), edit) for file in found for edit in file.edits]
