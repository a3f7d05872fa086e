"""The table of known failures: the rows of `failures.toml`.

In: the parsed TOML; out: named tuples, the most particular row first, ready to be searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from string import Formatter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args

from packaging.specifiers import SpecifierSet

from ..messages.catalog import LANGUAGES
from ..plan.reasons import Severity
from .lines import SourceLine
from .patterns import Pattern, any_quotes, pattern, regex
from .wordings import LoggedLibrary, Parsers, Wording, reader_of

T = TypeVar("T")
ByLanguage = Mapping[str, str]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
PLACEHOLDERS = frozenset({"library", "distribution", "major", "files", "wheels", "of_cuda"})


class ByRelease(NamedTuple):
    """What a failure is in some releases of onnxruntime-gpu, and what in all others."""

    releases: SpecifierSet
    inside: str
    """The code of the row that holds there."""
    cause: ByLanguage
    """What is said instead where the release is another."""
    remedy: ByLanguage


class Failure(NamedTuple):
    """A row of `failures.toml`."""

    code: str
    severity: Severity
    what: ByLanguage | None
    """The headline; None: the first sentence of the cause."""
    about: str
    """What it is about, and so whose remedy holds: `libraries`, `build`, `driver`, …"""
    ask: str
    """What the question that decides it is about."""
    generic: bool
    """Said only where nothing more particular explains an error: it follows from any."""
    effect: bool
    """It says only that CUDA was not used, and not why."""
    on_new_card: str | None
    """The row that holds where the build is for a CUDA that has no code for such a card."""
    after: tuple[str, ...]
    """The failures that it follows from."""
    signals: tuple[str, ...]
    signals_if_wanted: tuple[str, ...]
    """They say it only where a GPU was wanted."""
    patterns: tuple[Pattern, ...]
    if_wanted: tuple[Pattern, ...]
    """They say it only where a GPU was wanted: a program for CPUs prints the same."""
    cause: ByLanguage
    remedy: ByLanguage
    commands: tuple[str, ...]
    fixable: bool
    findings: tuple[str, ...]
    """The findings of a plan that say the same of a machine."""
    glibc: str | None
    """The oldest glibc that it is seen with."""
    by_release: ByRelease | None
    to_use: ByLanguage | None
    """Added to the remedy where the program has a Python that packages can be installed into."""
    bundled: ByLanguage | None
    """The remedy instead where the program brings onnxruntime itself."""
    sources: tuple[str, ...]
    program: str
    """The kind of program whose own failure it is; empty: onnxruntime's, or anybody's."""


class ProgramKind(NamedTuple):
    """A kind of program that writes logs, and what fixes a failure there."""

    code: str
    name: ByLanguage
    traces: tuple[Pattern, ...]
    remedies: Mapping[str, ByLanguage]
    """By what a failure is about."""
    commands: Mapping[str, tuple[str, ...]]
    """Those that its remedies name, by the same."""
    bundled: bool
    """Whether it brings an onnxruntime itself: no package of Python's fixes that."""
    besides: bool
    """Whether its remedy stands beside the row's: it runs on Python's packages, and loads CUDA by
    itself."""
    unless: tuple[Pattern, ...]
    """What shows that packages fix it all the same: an image of one's own, another GPU."""
    unless_at_all: bool
    """Whether that leaves nothing of it, also for what no package fixes."""


class Status(NamedTuple):
    """A status of CUDA."""

    number: int
    names: tuple[str, ...]
    text: str


class NeededFiles(NamedTuple):
    """What a program that brings onnxruntime itself needs beside it, for a CUDA major."""

    cuda: str
    cudnn: str
    newest_gpu: str | None
    """The newest compute capability that builds for this CUDA have code for; None: not known."""
    releases: SpecifierSet
    windows: str
    linux: str
    wheels: str


class FailureTable:
    """`failures.toml`, the most particular row first."""

    def __init__(
        self,
        failures: tuple[Failure, ...],
        libraries: tuple[LoggedLibrary, ...],
        *,
        statuses: tuple[Status, ...] = (),
        origins: tuple[ProgramKind, ...] = (),
        owner_commands: tuple[str, ...] = (),
        not_windows_commands: tuple[str, ...] = (),
        needed: tuple[NeededFiles, ...] = (),
        wordings: tuple[Wording, ...] = (),
        source_lines: tuple[SourceLine, ...] = (),
        ask: Mapping[str, ByLanguage] = MappingProxyType({}),
        needs: ByLanguage | None = None,
        gpu_wanted: tuple[Pattern, ...] = (),
        gpu_used: tuple[Pattern, ...] = (),
        ours: tuple[Pattern, ...] = (),
        python: tuple[Pattern, ...] = (),
    ) -> None:
        """Keep the rows.

        `ask`: the question that decides, by what a failure is about; `needs`: what is said where
        the version of onnxruntime is known; `owner_commands`: how commands begin that only a host's
        owner can run;
        `not_windows_commands`: those that Windows does not have; `gpu_wanted`: what shows that a
        GPU was wanted; `gpu_used`: that a session has it; `ours`: that the program uses what this
        program can change; `python`: that it runs on Python's packages.
        """
        self.failures, self.libraries = failures, libraries
        self.statuses, self.origins = statuses, origins
        self.owner_commands, self.needed = owner_commands, needed
        self.not_windows_commands = not_windows_commands
        self.wordings, self.source_lines = wordings, source_lines
        self.ask, self.needs = ask, needs
        self.gpu_wanted, self.ours, self.python = gpu_wanted, ours, python
        self.gpu_used = gpu_used
        self.by_code = {row.code: row for row in failures if not row.program}
        self.programs = {kind.code: kind for kind in origins}

    def needed_by(self, oldest: str | None, newest: str | None) -> NeededFiles | None:
        """Return what the builds between two versions need; None where it is not the same."""
        if oldest is None or newest is None:
            return None
        rows = (row for row in self.needed if row.releases.contains(newest))
        return next((row for row in rows if row.releases.contains(oldest)), None)

    @cached_property
    def parsers(self) -> Parsers:
        """Return what reads loaders, statuses and resolvers."""
        known: dict[str, str] = {}
        for status in self.statuses:
            known |= dict.fromkeys((str(status.number), *status.names), f"cuda:{status.number}")
        texts = {row.text: f"cuda:{row.number}" for row in self.statuses if row.text}
        return Parsers.of(self.wordings, reader_of(self.libraries), known, texts)


def parse_failures(table: Mapping[str, Any]) -> FailureTable:
    """Make the table from the parsed TOML file.

    Raises ValueError with the path of the key where a row does not fit.
    """
    failures = _rows(table, "failure", _failure)
    of_program = {row["code"]: _own(row) for row in table.get("origin", ())}
    elsewhere = [
        _base(row) | of_program.get(each["program"], {}) | each
        for row in table["failure"]
        for each in row.get("elsewhere", ())
    ]
    return FailureTable(
        failures=(*_rows({"elsewhere": elsewhere}, "elsewhere", _failure), *failures),
        libraries=_rows(table, "library", _library),
        statuses=_rows(table, "statuses", _status) if "statuses" in table else (),
        origins=_rows(table, "origin", _origin) if "origin" in table else (),
        owner_commands=tuple(table.get("owner_commands", ())),
        not_windows_commands=tuple(table.get("not_windows_commands", ())),
        needed=_rows(table, "needed", _needed) if "needed" in table else (),
        wordings=(
            *map(_not_opened, table.get("not_opened", ())),
            *(_rows(table, "wordings", _wording) if "wordings" in table else ()),
        ),
        ask=table.get("ask", {}),
        needs=table.get("needs"),
        source_lines=tuple(SourceLine(*row) for row in table.get("source_lines", ())),
        gpu_wanted=_patterns(table.get("gpu_wanted", ()), "gpu_wanted"),
        gpu_used=_patterns(table.get("gpu_used", ()), "gpu_used"),
        ours=_patterns(table.get("ours", ()), "ours"),
        python=_patterns(table.get("python", ()), "python"),
    )


def _rows(table: Mapping[str, Any], name: str, make: Callable[[Any], T]) -> tuple[T, ...]:
    made: list[T] = []
    try:
        made.extend(make(row) for row in table[name])
    except KeyError as error:
        raise ValueError(f"{name}[{len(made)}].{error.args[0]}: missing") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{name}[{len(made)}]: {error}") from error
    return tuple(made)


def _library(row: Mapping[str, Any]) -> LoggedLibrary:
    return LoggedLibrary(
        regex=regex(row["pattern"]),
        part=row["part"],
        major=row.get("major", ""),
        distribution=row.get("distribution", ""),
        name=row.get("name"),
    )


def _status(row: Sequence[Any]) -> Status:
    number, names, text = row
    return Status(number, tuple(names), text)


def _wording(row: Sequence[str]) -> Wording:
    kind, source = row
    return Wording(pattern(source), kind)


def _not_opened(text: str) -> Wording:
    """Return how glibc says in one of its languages that a library is not there.

    A program that opens it by itself repeats the name in front.
    """
    asker = r"(?:(?P<asker>[^\s\"':;,]{2,300})\.? (?:Error|with error):\s{1,4})?"
    library = r"(?P<library>[^\s\"':;,]{2,300})"
    return Wording(pattern(f"{asker}{library}: {re.escape(text)}(?!: Exec format)"), "missing")


def _needed(row: Mapping[str, Any]) -> NeededFiles:
    return NeededFiles(
        cuda=row["cuda"],
        cudnn=row["cudnn"],
        newest_gpu=row.get("newest_gpu"),
        releases=SpecifierSet(row["releases"]),
        windows=row["windows"],
        linux=row["linux"],
        wheels=row["wheels"],
    )


def _origin(row: Mapping[str, Any]) -> ProgramKind:
    remedies = {about: _texts(row["remedy"], about) for about in row.get("remedy", ())}
    for about, alike in row.get("alike", {}).items():
        remedies |= dict.fromkeys(alike, remedies[about])
    return ProgramKind(
        code=row["code"],
        name=row["name"],
        traces=_patterns(row.get("traces", ()), "traces"),
        remedies=remedies,
        commands={about: tuple(lines) for about, lines in row.get("commands", {}).items()},
        bundled=row.get("bundled", False),
        besides=row.get("besides", False),
        unless=_patterns(row.get("unless", ()), "unless"),
        unless_at_all=row.get("unless_at_all", False),
    )


def _base(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a failure of another program has of the row that it stands under.

    No package of ours fixes it.
    """
    kept = {key: row[key] for key in ("code", "severity", "about")}
    return {**kept, "commands": (), "fixable": False, "sources": ()}


def _own(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the failures of a program have where they have no other: remedy and source."""
    remedy = {"remedy": row["own_remedy"]} if "own_remedy" in row else {}
    return {**remedy, "sources": (row["source"],)}


def _failure(row: Mapping[str, Any]) -> Failure:
    if row["severity"] not in SEVERITIES:
        raise ValueError(f"severity: {row['severity']!r} is not known")
    signals, sentences = tuple(row.get("signals", ())), tuple(row.get("match", ()))
    if not (signals or sentences or "program" in row):
        raise ValueError("signals: neither these nor match")
    return Failure(
        code=row["code"],
        severity=row["severity"],
        what=_texts(row, "what") if "what" in row else None,
        about=row["about"],
        ask=row.get("ask", row["about"]),
        effect=row.get("effect", False),
        on_new_card=row.get("on_new_card"),
        generic=row.get("generic", False),
        after=tuple(row.get("after", ())),
        signals=signals,
        signals_if_wanted=tuple(row.get("signals_if_wanted", ())),
        patterns=_patterns(sentences, "match"),
        if_wanted=_patterns(row.get("match_if_wanted", ()), "match_if_wanted"),
        cause=_texts(row, "cause"),
        remedy=_texts(row, "remedy"),
        commands=tuple(row["commands"]),
        fixable=row["fixable"],
        findings=tuple(row.get("findings", ())),
        glibc=row.get("glibc"),
        by_release=_by_release(row["by_release"]) if "by_release" in row else None,
        to_use=_texts(row, "to_use") if "to_use" in row else None,
        bundled=_texts(row, "bundled") if "bundled" in row else None,
        sources=tuple(row["sources"]),
        program=row.get("program", ""),
    )


def _by_release(row: Mapping[str, Any]) -> ByRelease:
    return ByRelease(
        releases=SpecifierSet(row["releases"]),
        inside=row["inside"],
        cause=_texts(row, "cause"),
        remedy=_texts(row, "remedy"),
    )


def _texts(row: Mapping[str, Any], key: str) -> ByLanguage:
    """Return a text in all languages; its placeholders are known ones."""
    texts: Mapping[str, str] = row[key]
    for language in LANGUAGES:
        names = {name for _, name, _, _ in Formatter().parse(texts[language]) if name}
        if unknown := names.difference(PLACEHOLDERS):
            raise ValueError(f"{key}.{language}: {', '.join(sorted(unknown))}")
    return texts


def _patterns(sources: tuple[str, ...] | list[str], key: str) -> tuple[Pattern, ...]:
    return tuple(
        pattern(any_quotes(source), f"{key}[{number}]") for number, source in enumerate(sources)
    )


RELEASE = re.compile(
    r"onnxruntime(?:[-_]gpu)?(?:-|[ =v(:@]{1,4}|\.__version__[ =:]{1,3})"
    r"(?P<release>1\.\d{1,2}\.\d{1,2})(?![\d.])"
)
"""The release of onnxruntime that a log names."""
