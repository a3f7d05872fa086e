"""The command that runs without a name: diagnose, and print the plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from ...data_files import load_table
from ...facts.gpu_names import known_capabilities
from ...facts.target import Target
from ...messages.catalog import Language
from ...plan.model import Plan
from ...resolve.cases import plan_by_cases
from ...resolve.opened import plan_for
from ...resolve.resolver import alternatives
from ...resolve.situation import with_driver_cuda
from .. import console
from ..command_line import applying, looking, texts_for
from ..inputs import PlanInputs, gather_inputs, wheels_given
from ..matrix_files import show_age
from ..requests import InstallOptions, PlanRequest

if TYPE_CHECKING:
    from ...messages.sections import Section
    from ..project import ProjectPlan

VERDICT_EXIT = {"healthy": 0, "fixable": 1, "impossible": 3, "unknown": 1}


def run(asked: PlanRequest, environ: Mapping[str, str], language: Language) -> int:
    """Diagnose, and print the plan."""
    inputs = gather_inputs(asked, environ)
    if inputs.target:
        wheels_given(asked.sources.find_links)
    if inputs.facts.unknown:
        known = known_capabilities(load_table("gpus"), inputs.facts.platform.machine)
        plan = plan_by_cases(inputs.facts, inputs.options, inputs.matrix, known)
    else:
        plan = plan_for(inputs.facts, inputs.options, inputs.matrix)
    if plan.verdict == "impossible" or (asked.verbose and not asked.json):
        found = alternatives(inputs.facts, inputs.options, inputs.matrix)
        plan = plan._replace(alternatives=found)
    plan = with_runs_on(plan, inputs, asked)
    print_plan(plan, inputs, asked, language)
    show_age(environ)
    return plan_exit_code(plan)


def with_runs_on(plan: Plan, inputs: PlanInputs, asked: PlanRequest) -> Plan:
    """Return `plan` with the drivers and GPUs that its set can serve, where that is of interest."""
    if not (asked.json or asked.verbose or asked.machine.driver):
        return plan
    from ...resolve.serving import selection_runs_on

    known = known_capabilities(load_table("gpus"), inputs.facts.platform.machine)
    return plan._replace(runs_on=selection_runs_on(plan, inputs.facts, inputs.matrix, known))


def plan_exit_code(plan: Plan) -> int:
    """Return the exit code of a plan; it is 1 where no package fixes what is wrong, too."""
    return VERDICT_EXIT[plan.verdict] or int(bool(plan.unfixable))


def print_plan(
    plan: Plan,
    inputs: PlanInputs,
    asked: PlanRequest,
    language: Language,
) -> None:
    """Print a plan, for people or as JSON."""
    from ...report.plan import looking_section, plan_sections, shows_other_index
    from ...report.plan_document import plan_json

    found = project_of(plan, inputs, asked.install)
    if asked.json:
        document = plan_json(plan, texts_for(asked.options, "en"))
        if found:
            from ...report.project import project_json

            document["project"] = project_json(found.project, found.changes, written=False)
        console.print_json(document)
        return
    texts, chooses = texts_for(asked.options, language), inputs.options.chooses
    at_hand = wheels_at_hand(plan, asked.sources.find_links) if inputs.target else frozenset()
    options, folder = asked.options, asked.sources.find_links
    if inputs.target and asked.sources.offline:  # what it promises may need the network
        complete = at_hand.issuperset(wheel.file for wheel in plan.install)
        complete = complete and _has_required(plan, inputs.target, folder)
        options = {**options, "offline": complete}
    besides: list[Section] = []
    if found and (found.changes or found.problem):
        from ...report.project import project_section

        besides.append(project_section(found.project, found.changes, texts, found.problem))
    url = next((unlock.url for unlock in plan.unlock if unlock.url), "")
    if url and shows_other_index(plan, asked=asked.verbose or chooses):
        besides.append(looking_section(looking(asked.options, url, inputs.facts), texts))
    sections = plan_sections(
        plan,
        with_driver_cuda(inputs.facts, inputs.matrix),
        texts,
        verbose=asked.verbose,
        asked=chooses,
        command=applying(
            options, plan, inputs.facts, inputs.where, write=bool(found and found.changes)
        ),
        where=inputs.where,
        at_hand=at_hand,
        besides=besides,
    )
    console.print_sections(sections)


def project_of(plan: Plan, inputs: PlanInputs, asked: InstallOptions) -> ProjectPlan | None:
    """Return what `plan` changes in the project of the environment, where it is one of a project.

    Raises as `plan_project`.
    """
    if inputs.facts.python.project is None and not asked.requirement:
        return None
    from ..project import plan_project

    return plan_project(plan, inputs, asked)


def wheels_at_hand(plan: Plan, find_links: str | None) -> frozenset[str]:
    """Return the files of `plan` that the folder of `--find-links` has."""
    if find_links is None:
        return frozenset()
    folder = Path(find_links)
    return frozenset(
        wheel.file
        for wheel in plan.install
        if wheel.file and (found := folder / wheel.file).is_file()
        if found.stat().st_size == wheel.size
    )


def _has_required(plan: Plan, target: Target, find_links: str | None) -> bool:
    """Return whether `--find-links` has a wheel of all that uv will have to choose."""
    from ...index.pinning import files_in_folder, wheel_target_of
    from ...index.wheel_choice import find_newest

    folder, fits = wheels_given(find_links), wheel_target_of(target)
    offers = [] if folder is None else files_in_folder(folder)
    wanted = map(Requirement, plan.requires)
    return all(find_newest(offers, one.name, one.specifier, fits) for one in wanted)
