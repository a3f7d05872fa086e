"""Read an error log, name the causes, look whether they are so here, and name what fixes it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from ...cli import console
from ...cli.command_line import SYSTEM, applying, command_line, texts_for
from ...cli.inputs import gather_inputs, require_known
from ...cli.options import plan_options_of
from ...cli.parser import parse
from ...cli.requests import PlanRequest, made
from ...cli.streams import shows_chinese
from ...cli.text_files import STDIN, TextBegin, place, read_texts
from ...data_files import load_table
from ...errors import Error
from ...facts.model import GPU_BUILD, Facts, System
from ...log_lines.explanations import Explanation, on_system
from ...log_lines.failures import FailureTable, parse_failures
from ...log_lines.lines import ShownInLog
from ...log_lines.matcher import Search
from ...matrix.model import Matrix
from ...matrix.torch import TORCH
from ...messages.catalog import Language, Texts, load_texts
from ...plan.model import Plan, Where
from ...plan.reasons import reason
from ...plan.wheels import Wheel
from ...resolve.options import PlanOptions
from .fix import Fix, fix_for
from .guest import ExplainRequest
from .observation import Observation, observe
from .report import explanation_json, explanation_sections

_THERE = {"mend-owner": reason("mend-owner-there"), "mend-here": reason("mend-there")}
"""What is said of another machine instead."""


class Looked(NamedTuple):
    """What was seen of the machine, and what would be done there."""

    facts: Facts
    plan: Plan
    plan_with: Callable[[tuple[str, ...]], Plan]
    """The plan with these flags besides: `--torch`, `match`."""
    releases: frozenset[str]
    """The releases of onnxruntime-gpu that the matrix holds."""
    where: Where
    """Where the environment is."""


def run(request: ExplainRequest, environ: Mapping[str, str], language: Language) -> int:
    """Explain a log, or what several files say together. Raises Error `log-unreadable`."""
    asked, files = request.plan, request.words or (STDIN,)
    if STDIN in files and sys.stdin.isatty():
        console.print_notice(load_texts(language).label("explain-reads-stdin"))
    table = parse_failures(load_table("failures"))
    search = Search(table)
    begins, text = read_texts(files, search)
    if search.language and not console.is_language_set(environ) and shows_chinese():
        language = search.language
    looked = None if request.text_only else _looked(asked, environ, language)
    environment = _environment(asked, search.shown)
    if looked and environment and _is_another(looked, environment):
        looked = None
    if looked is None and environment:
        asked = asked._replace(options={**asked.options, "python": environment})
    texts = texts_for(asked.options, "en" if asked.json else language)
    build = looked.facts.onnxruntime if looked else None
    release = build.version if build else None
    has_gpu = bool(looked and looked.facts.gpus)
    found = search.explanations(texts.language, release, has_gpu=has_gpu)
    system = looked.facts.platform.system if looked else search.shown.system or SYSTEM
    found = on_system(found, system, table)
    answer = _answer(search, found, texts, looked, table)
    fix = answer.fix
    command = _command(asked, fix, looked, search.shown.system or SYSTEM)
    installs: tuple[Wheel, ...] = ()
    if fix.arguments[-1:] == ("--apply",):
        flags = fix.arguments[:-1]
        plan = looked.plan_with(flags) if looked and flags else looked and looked.plan
        plan = plan or _planned_by_outputs(asked, text, search.shown)
        installs = plan.install if plan else ()
    listed = [f"{wheel.name} {wheel.version}" for wheel in installs]
    if asked.json:
        document = explanation_json(
            found, texts, answer.observations, fix, command=command, installs=listed
        )
        console.print_json(document | _files_json(begins))
        return 0
    console.print_sections(
        explanation_sections(
            found,
            texts,
            answer.observations,
            fix,
            command=command,
            installs=listed,
            machine=_name(asked, texts),
            origins={each.code: each.name[language] for each in table.origins},
            place=partial(place, begins),
        )
    )
    return 0


class Answer(NamedTuple):
    """What a machine says of a log, and what fixes it."""

    observations: tuple[Observation, ...]
    fix: Fix


def _answer(
    search: Search,
    found: tuple[Explanation, ...],
    texts: Texts,
    looked: Looked | None,
    table: FailureTable,
) -> Answer:
    program = search.program(texts.language)
    observations: tuple[Observation, ...] = ()
    if looked is None:
        fix = fix_for(found, observations, None, by=search.fix_label(found), program=program)
    else:
        observations = observe(found, table, looked.facts, looked.plan, looked.releases)
        fix = fix_for(
            found,
            observations,
            looked.plan,
            looked.plan_with,
            by_user=texts.is_for_user,
            program=program,
        )
        if looked.where == "there":
            fix = fix._replace(why=_THERE.get(fix.why.code, fix.why))
    return Answer(observations, Fix(reason("mend-over")) if search.is_over else fix)


def _command(asked: PlanRequest, fix: Fix, looked: Looked | None, system: System) -> str:
    """Return what is to be typed; empty where no command of this program fixes it."""
    if looked and fix.arguments[-1:] == ("--apply",):
        flags = fix.arguments[:-1]
        plan = looked.plan_with(flags) if flags else looked.plan
        return applying(_with(asked, flags).options, plan, looked.facts, looked.where)
    if fix.arguments or fix.looks:
        return command_line(asked.options, *fix.arguments, system=SYSTEM if looked else system)
    return ""


def _name(asked: PlanRequest, texts: Texts) -> str:
    """Return what the machine that is looked at is called."""
    file = asked.machine.facts_file
    return texts.label("explain-this-machine") if file is None else Path(file).name


def _environment(asked: PlanRequest, shown: ShownInLog) -> str | None:
    """Return the environment that a log names, as `--python` takes it; None: none, or one is given.

    A Python without an environment of its own has its program beside its libraries on Windows.
    """
    root = shown.environment
    if root is None or asked.machine.python is not None or asked.machine.facts:
        return None
    alone = re.split(r"[\\/]", root)[-1].lower().startswith("python")
    return root + ("\\python.exe" if alone and shown.system == "windows" else "")


def _is_another(looked: Looked, environment: str) -> bool:
    """Return whether the environment that was looked at is not the one that a log names."""
    return not (looked.facts.python.executable or "").startswith(environment)


def _planned_by_outputs(asked: PlanRequest, text: str, shown: ShownInLog) -> Plan | None:
    """Return the plan for the machine whose outputs stand in a text; None where they lack a part.

    An architecture that no output shows is taken to be x86_64.
    """
    from ...facts.document import from_json
    from ...facts.outputs import read_outputs
    from ...matrix.load import add_torch, load_matrix

    outputs = read_outputs(text, load_table("gpus"))
    if not (outputs.value("driver") and outputs.value("gpus")):
        return None
    document = outputs.document()
    document["platform"]["system"] = document["platform"]["system"] or shown.system
    document["platform"]["machine"] = document["platform"]["machine"] or "x86_64"
    document["python"]["version"] = document["python"]["version"] or shown.python
    if not document["packages"] and shown.newest is not None:
        document["packages"] = [{"name": GPU_BUILD, "version": shown.newest}]
    if None in {document["platform"]["system"], document["python"]["version"]}:
        return None
    facts, matrix = from_json(document), load_matrix(torch=False)
    if facts.package(TORCH) is not None:
        matrix = add_torch(matrix)
    return _planned(asked, facts, plan_options_of(asked), matrix, "there").plan


def _files_json(begins: Sequence[TextBegin]) -> dict[str, object]:
    """Return where each of several files begins in the count of lines."""
    if len(begins) == 1:
        return {}
    return {"files": [{"file": each.file, "line_number": each.line} for each in begins]}


def _looked(asked: PlanRequest, environ: Mapping[str, str], language: Language) -> Looked | None:
    """Return what is seen of the machine, and the plan for it; None where it cannot be looked at.

    A log can be explained without: what keeps the machine from being read is said, and no more.
    """
    try:
        inputs = gather_inputs(asked, environ)
        require_known(inputs.facts)
        return _planned(asked, inputs.facts, inputs.options, inputs.matrix, inputs.where)
    except Error as error:
        if error.code != "machine-unknown" and (
            asked.machine.facts or asked.machine.python is not None
        ):
            raise
        texts = load_texts(language)
        console.print_notice(texts.label("explain-not-looked", why=texts.error(error).text))
        return None


def _planned(
    asked: PlanRequest, facts: Facts, options: PlanOptions, matrix: Matrix, where: Where
) -> Looked:
    """Return a machine with the plan for it."""
    from ...matrix.load import add_torch
    from ...resolve.resolver import resolve

    plan = partial(resolve, facts, unlocking=False)

    @cache
    def plan_with(flags: tuple[str, ...]) -> Plan:
        wanted = plan_options_of(_with(asked, flags))
        return plan(wanted, add_torch(matrix))

    releases = frozenset(build.version for build in matrix.builds)
    return Looked(facts, plan(options, matrix), plan_with, releases, where)


def _with(asked: PlanRequest, flags: tuple[str, ...]) -> PlanRequest:
    """Return what is asked with these flags besides."""
    options = {**asked.options, **parse(flags).options}
    return made(asked, {**options, "options": options})
