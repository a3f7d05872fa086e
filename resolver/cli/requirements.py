"""The requirements files that `-r` names, with the pin of a plan in them."""

from __future__ import annotations

import argparse

from ..facts.markers import marker_environment
from ..plan.model import Plan
from ..requirements.rewrite_files import MendedFile, mended
from .inputs import PlanInputs


def mended_by(
    plan: Plan, inputs: PlanInputs, arguments: argparse.Namespace
) -> tuple[MendedFile, ...]:
    """Return the files that `-r` names with the pin of `plan` in them; none where nothing works.

    Raises Error `requirements-unreadable`.
    """
    if plan.release is None:
        return ()
    return mended(arguments.requirement, plan.release, marker_environment(inputs.facts))
