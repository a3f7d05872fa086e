"""One plan for several facts files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...cli import console
from ...cli.command_line import locking
from ...cli.inputs import require_known
from ...cli.options import plan_options_of
from ...cli.requests import PlanRequest
from ...errors import Error
from ...lock.groups import FleetMachine
from ...matrix.load import load_matrix
from ...messages.catalog import Language, load_texts
from .facts_files import read_machines
from .guest import SeveralRequest
from .model import FleetPlan
from .plan_report import fleet_json, fleet_sections
from .planner import plan_fleet


def run(request: SeveralRequest, environ: Mapping[str, str], language: Language) -> int:
    """Print one plan for all machines, or the smallest split; 3 where one is left with nothing.

    Raises as `plan_machines`.
    """
    del environ
    made = plan_machines(request.plan, with_cpu=request.with_cpu)
    print_fleet_plan(made, request.plan, language)
    return 0 if made.complete else 3


def plan_machines(asked: PlanRequest, *, with_cpu: bool) -> FleetPlan:
    """Return the plan for the machines that the command line names.

    Raises Error `flags-clash` for `--python`, and those of `read_machines`, `require_known` and the
    wishes.
    """
    if asked.machine.python is not None:
        raise Error("flags-clash", flags="--python, --facts, --facts")
    machines = machines_in(asked.machine.several)
    for machine in machines:
        require_known(machine.facts, machine.name)
    return plan_fleet(machines, plan_options_of(asked), load_matrix(), with_cpu=with_cpu)


def print_fleet_plan(made: FleetPlan, asked: PlanRequest, language: Language) -> None:
    """Print a fleet's plan, for people or as JSON."""
    if asked.json:
        console.print_json(fleet_json(made, load_texts("en")))
    else:
        texts = load_texts(language)
        command = locking(asked.options)
        sections = fleet_sections(made, texts, verbose=asked.verbose, command=command)
        console.print_sections(sections)


def machines_in(files: Sequence[str]) -> tuple[FleetMachine, ...]:
    """Return the machines of facts files. Raises as `read_machines`."""
    return tuple(FleetMachine(name=name, facts=facts) for name, facts in read_machines(files))
