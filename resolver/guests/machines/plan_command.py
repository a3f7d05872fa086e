"""One plan for several facts files, and `--check` of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...cli import console
from ...cli.command_line import locking
from ...cli.commands.check import tell
from ...cli.flags import CommandLine
from ...cli.inputs import require_known
from ...cli.options import plan_options_of
from ...errors import Error
from ...lock.groups import FleetMachine
from ...matrix.load import load_matrix
from ...messages.catalog import Language, load_texts
from ...resolve.cases import checked_plan
from .facts_files import read_machines
from .guest import MachinesRequest
from .model import FleetPlan
from .plan_report import fleet_json, fleet_sections
from .planner import plan_fleet


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Plan for all machines, or check them all.

    Raises as `plan_machines`.
    """
    del environ
    return _check(arguments) if arguments.check else _plan(arguments, language)


def _plan(arguments: CommandLine, language: Language) -> int:
    """Print one plan for all machines, or the smallest split; 3 where one is left with nothing."""
    made = plan_machines(arguments)
    print_fleet_plan(made, arguments, language)
    return 0 if made.complete else 3


def plan_machines(arguments: CommandLine) -> FleetPlan:
    """Return the plan for the machines that the command line names.

    Raises Error `flags-clash` for `--python`, and those of `read_machines`, `require_known` and the
    wishes.
    """
    if arguments.python is not None:
        raise Error("flags-clash", flags="--python, --facts, --facts")
    machines = _read_machines(arguments.machines)
    for machine in machines:
        require_known(machine.facts, machine.name)
    with_cpu = arguments.request(MachinesRequest).with_cpu
    return plan_fleet(machines, plan_options_of(arguments), load_matrix(), with_cpu=with_cpu)


def print_fleet_plan(made: FleetPlan, arguments: CommandLine, language: Language) -> None:
    """Print a fleet's plan, for people or as JSON."""
    if arguments.json:
        console.print_json(fleet_json(made, load_texts("en")))
    else:
        texts = load_texts(language)
        command = locking(arguments)
        sections = fleet_sections(made, texts, verbose=arguments.verbose, command=command)
        console.print_sections(sections)


def _check(arguments: CommandLine) -> int:
    """Tell by the exit code how the worst of the machines and their environments is."""
    options, matrix = plan_options_of(arguments), load_matrix()
    machines = _read_machines(arguments.machines)
    kinds = {id(machine.facts): machine.facts for machine in machines}.values()
    return tell([checked_plan(facts, options, matrix) for facts in kinds], arguments)


def _read_machines(files: Sequence[str]) -> tuple[FleetMachine, ...]:
    return tuple(FleetMachine(name=name, facts=facts) for name, facts in read_machines(files))
