"""The requirements files that `-r` names, with the pin of a plan in them."""

from __future__ import annotations

import argparse

from ..facts.markers import marker_environment
from ..plan.model import Plan
from ..requirements.rewrite_files import RewrittenFile, rewrite_files
from .inputs import PlanInputs


def rewritten_for_plan(
    plan: Plan, inputs: PlanInputs, arguments: argparse.Namespace
) -> tuple[RewrittenFile, ...]:
    """Return the files that `-r` names with the pin of `plan` in them; none where nothing works.

    Raises Error `requirements-unreadable`.
    """
    if plan.release is None:
        return ()
    return rewrite_files(arguments.requirement, plan.release, marker_environment(inputs.facts))
