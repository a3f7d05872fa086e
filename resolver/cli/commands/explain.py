"""Read an error log, name the causes, look whether they are so here, and name what mends it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple, cast

from ...data_files import load_table
from ...errors import Error
from ...explain.failures import parse_failures
from ...explain.here import Here, look
from ...explain.matcher import Search
from ...explain.mending import mending
from ...explain.reading import text_of
from ...facts.model import Facts
from ...matrix.model import Build
from ...messages.catalog import Language, load_texts
from ...plan.model import Plan, Where
from ...report.explanation import explanation_json, explanation_sections
from .. import console
from ..command_line import applying, command_line
from ..flags import FLAGS, CommandLine, given
from ..parser import parse

STDIN = "-"
BLOCK = 1 << 20


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
    """Explain a log. Raises Error `log-unreadable`."""
    texts = load_texts("en" if arguments.json else language)
    file = arguments.argument or STDIN
    if file == STDIN and sys.stdin.isatty():
        console.print_notice(load_texts(language).label("explain-reads-stdin"))
    table = parse_failures(load_table("failures"))
    search = Search(table)
    log = text_of(_blocks(file))
    if isinstance(log, str):
        search.feed(log, joined=True)
    else:
        for piece in log:
            search.feed(piece)
    looked = None if arguments.text_only else _looked(arguments, environ, language)
    build = looked.facts.onnxruntime if looked else None
    found = search.explanations(texts.language, build.version if build else None, _build_of)
    here: tuple[Here, ...] = ()
    mends = mending(found, here, None)
    if looked:
        here = look(found, table, looked.facts, looked.plan, looked.releases)
        about = looked.plan, looked.plan_with
        mends = mending(found, here, *about, by_user=texts.is_for_user)
    command = command_line(arguments, *mends.arguments) if mends.arguments else ""
    if looked and mends.arguments[-1:] == ("--apply",):
        flags = mends.arguments[:-1]
        plan = looked.plan_with(flags) if flags else looked.plan
        command = applying(_with(arguments, flags), plan, looked.facts, looked.where)
    if arguments.json:
        console.print_json(explanation_json(found, texts, here, mends, command))
    else:
        names = {each.code: each.name[language] for each in table.origins}
        sections = explanation_sections(found, texts, here, mends, command=command, origins=names)
        console.print_sections(sections)
    return 0


def _build_of(release: str) -> Build | None:
    """Return a build of a release that has a TensorRT provider: they link one on every platform."""
    from ...matrix.load import load_matrix

    builds = load_matrix(torch=False).builds
    return next((each for each in builds if each.version == release and each.tensorrt), None)


def _looked(
    arguments: CommandLine, environ: Mapping[str, str], language: Language
) -> Looked | None:
    """Return what is seen of the machine, and the plan for it; None where it cannot be looked at.

    A log can be explained without: what keeps the machine from being read is said, and no more.
    """
    from ...matrix.load import add_torch
    from ...resolve.resolver import resolve
    from ..inputs import gather_inputs, plan_options_of

    try:
        inputs = gather_inputs(arguments, environ)
        plan = partial(resolve, inputs.facts, unlocking=False)
        made = plan(inputs.options, inputs.matrix)
    except Error as error:
        if arguments.facts or arguments.python is not None:
            raise
        texts = load_texts(language)
        console.print_notice(texts.label("explain-not-looked", why=texts.error(error).text))
        return None

    @cache
    def plan_with(flags: tuple[str, ...]) -> Plan:
        wanted = plan_options_of(_with(arguments, flags))
        return plan(wanted, add_torch(inputs.matrix))

    releases = frozenset(build.version for build in inputs.matrix.builds)
    return Looked(inputs.facts, made, plan_with, releases, inputs.where)


def _with(arguments: CommandLine, flags: tuple[str, ...]) -> CommandLine:
    """Return the command line with these flags besides."""
    besides = parse(flags)
    changed = {flag.field: given(besides, flag) for flag in FLAGS if given(besides, flag)}
    return arguments._replace(**changed)


def _blocks(file: str) -> Iterator[bytes]:
    """Yield the bytes of a log; `-` is standard input. Raises Error `log-unreadable`."""
    try:
        if file == STDIN:
            yield from _read(cast("BufferedIOBase", sys.stdin.buffer))
        else:
            with Path(file).open("rb") as stream:
                yield from _read(stream)
    except OSError as error:
        raise Error("log-unreadable", file=file, cause=error.strerror or error) from error


def _read(stream: BufferedIOBase) -> Iterator[bytes]:
    """Yield what is there, until the end: `read` would ask a terminal for its end twice."""
    return iter(partial(stream.read1, BLOCK), b"")
