"""Read an error log, name the causes, look whether they are so here, and name what mends it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from ...cli import console
from ...cli.command_line import applying, command_line, texts_for
from ...cli.flags import CommandLine, given
from ...cli.guests import FLAGS
from ...cli.inputs import gather_inputs, require_known
from ...cli.options import plan_options_of
from ...cli.parser import parse
from ...cli.text_files import STDIN, TextBegin, place, read_texts
from ...data_files import load_table
from ...errors import Error
from ...facts.model import Facts
from ...log_lines.explanations import on_system
from ...log_lines.failures import parse_failures
from ...log_lines.matcher import Search
from ...matrix.model import Matrix
from ...messages.catalog import Language, load_texts
from ...plan.model import Plan, Where
from ...plan.reasons import reason
from ...resolve.options import PlanOptions
from .guest import ExplainRequest
from .here import Here, look
from .mending import Mending, mending
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


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Explain a log, or what several files say together. Raises Error `log-unreadable`."""
    texts = texts_for(arguments, "en" if arguments.json else language)
    files = (arguments.argument or STDIN, *arguments.others)
    if STDIN in files and sys.stdin.isatty():
        console.print_notice(load_texts(language).label("explain-reads-stdin"))
    table = parse_failures(load_table("failures"))
    search = Search(table)
    begins = read_texts(files, search)
    looked = (
        None
        if arguments.request(ExplainRequest).text_only
        else _looked(arguments, environ, language)
    )
    build = looked.facts.onnxruntime if looked else None
    release = build.version if build else None
    has_gpu = bool(looked and looked.facts.gpus)
    found = search.explanations(texts.language, release, has_gpu=has_gpu)
    if looked:
        found = on_system(found, looked.facts.platform.system, table)
    here: tuple[Here, ...] = ()
    program = search.program(texts.language)
    mends = mending(found, here, None, by=search.mended_by(found), program=program)
    if looked:
        here = look(found, table, looked.facts, looked.plan, looked.releases)
        mends = mending(
            found, here, looked.plan, looked.plan_with, by_user=texts.is_for_user, program=program
        )
        if looked.where == "there":
            mends = mends._replace(why=_THERE.get(mends.why.code, mends.why))
    if search.is_over:
        mends = Mending(reason("mend-over"))
    command = command_line(arguments, *mends.arguments) if mends.arguments else ""
    if looked and mends.arguments[-1:] == ("--apply",):
        flags = mends.arguments[:-1]
        plan = looked.plan_with(flags) if flags else looked.plan
        command = applying(_with(arguments, flags), plan, looked.facts, looked.where)
    if arguments.json:
        document = explanation_json(found, texts, here, mends, command)
        console.print_json(document | _files_json(begins))
    else:
        names = {each.code: each.name[language] for each in table.origins}
        sections = explanation_sections(
            found, texts, here, mends, command=command, origins=names, place=partial(place, begins)
        )
        console.print_sections(sections)
    return 0


def _files_json(begins: Sequence[TextBegin]) -> dict[str, object]:
    """Return where each of several files begins in the count of lines."""
    if len(begins) == 1:
        return {}
    return {"files": [{"file": each.file, "line_number": each.line} for each in begins]}


def _looked(
    arguments: CommandLine, environ: Mapping[str, str], language: Language
) -> Looked | None:
    """Return what is seen of the machine, and the plan for it; None where it cannot be looked at.

    A log can be explained without: what keeps the machine from being read is said, and no more.
    """
    try:
        inputs = gather_inputs(arguments, environ)
        require_known(inputs.facts)
        return _planned(arguments, inputs.facts, inputs.options, inputs.matrix, inputs.where)
    except Error as error:
        if error.code != "machine-unknown" and (arguments.facts or arguments.python is not None):
            raise
        texts = load_texts(language)
        console.print_notice(texts.label("explain-not-looked", why=texts.error(error).text))
        return None


def _planned(
    arguments: CommandLine, facts: Facts, options: PlanOptions, matrix: Matrix, where: Where
) -> Looked:
    """Return a machine with the plan for it."""
    from ...matrix.load import add_torch
    from ...resolve.resolver import resolve

    plan = partial(resolve, facts, unlocking=False)

    @cache
    def plan_with(flags: tuple[str, ...]) -> Plan:
        wanted = plan_options_of(_with(arguments, flags))
        return plan(wanted, add_torch(matrix))

    releases = frozenset(build.version for build in matrix.builds)
    return Looked(facts, plan(options, matrix), plan_with, releases, where)


def _with(arguments: CommandLine, flags: tuple[str, ...]) -> CommandLine:
    """Return the command line with these flags besides."""
    besides = parse(flags)
    changed = {flag.field: given(besides, flag) for flag in FLAGS if given(besides, flag)}
    return arguments._replace(**changed)
