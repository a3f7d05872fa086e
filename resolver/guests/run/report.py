"""The sessions of a program: as text, as JSON.

Core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ...log_lines.explanations import Explanation
from ...messages.catalog import Texts
from ...messages.sections import Row, Section, milliseconds
from ...messages.shells import PROGRAM, TypedCommand
from ...plan.reasons import Reason
from .advice import Knob
from .events import (
    ImportedLibrary,
    InferenceSession,
    ProgramSeen,
    Runs,
    TorchState,
    Unobserved,
)
from .verdicts import ProgramVerdict, SessionGroup, SessionVerdict

STYLES: Mapping[str, str] = {
    "asked-not-got": "red",
    "import-failed": "red",
    "not-whole": "red",
    "printed-failure": "red",
    "got": "green",
}
ON_GPU = frozenset({"got", "got-but-slow-options", "asked-tensorrt-got-cuda"})
"""The verdicts of sessions that have something of what they asked for beyond the CPU."""
SHOWN_MODELS = 5
SHOWN_PYTHONS = 5
"""Those that could not be observed."""
SHOWN_WORDS = 5
"""Lines of onnxruntime's that are shown where no known failure stands in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """A group of sessions, and what can be done about them."""

    group: SessionGroup
    knobs: tuple[Knob, ...]
    advice: tuple[Reason, ...]
    command: TypedCommand = PROGRAM
    """This program, for the environment of the sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReport:
    """What is reported of a program."""

    command: str
    status: int
    """Negative: the signal that ended it."""
    verdict: ProgramVerdict
    seen: ProgramSeen
    groups: tuple[Advised, ...]
    printed: tuple[Explanation, ...] = ()
    """The failures that its standard error shows, of a program that is not Python."""
    instead: str = ""
    """The command that runs it with the environment beside it, which is not activated."""
    diagnose: str = ""
    """The command that says what is wrong in the environment of the sessions."""
    measure: str = ""
    """The command that measures the model of the first session, with the shapes that were seen."""


def session_line(session: InferenceSession, verdict: SessionVerdict, texts: Texts) -> str:
    """Return one session in one line, as it is shown while the program runs."""
    return texts.label(
        "run-live",
        verdict=texts.verdict(f"session-{verdict}"),
        model=_model(session),
        asked=_asked(session, texts),
        got=_got(session, texts),
    )


def program_sections(report: ProgramReport, texts: Texts) -> tuple[Section, ...]:
    """Return the report as text."""
    style = STYLES.get(report.verdict, "yellow")
    hint = "" if report.groups else texts.verdict(f"program-{report.verdict}", key="hint")
    rows = [
        Row(text=_program_text(report, texts), style=f"bold {style}"),
        Row(text=hint),
        *_missing(report, texts),
        *_imports(report.seen.libraries, texts),
        *_torches(report.seen.torches, texts),
        *_unobserved(report.seen.unobserved, texts),
        *(Row(text=text) for each in report.printed for text in (each.cause, each.remedy)),
    ]
    sections = [Section(heading=report.command, rows=tuple(row for row in rows if row.text))]
    sections += [_group_section(each, texts) for each in report.groups]
    if commands := _commands(report):
        shown = tuple(Row(text=text, unwrapped=True) for text in commands)
        sections.append(Section(heading=texts.label("run-next"), rows=shown))
    return tuple(sections)


def _program_text(report: ProgramReport, texts: Texts) -> str:
    if report.groups:
        groups = (each.group for each in report.groups)
        good = sum(len(group.sessions) for group in groups if group.verdict in ON_GPU)
        return texts.label("run-sessions", count=len(report.seen.sessions), got=good)
    return texts.verdict(f"program-{report.verdict}")


def _commands(report: ProgramReport) -> list[str]:
    return [row for row in (report.instead, report.diagnose, report.measure) if row]


def _missing(report: ProgramReport, texts: Texts) -> list[Row]:
    if report.verdict != "not-installed":
        return []
    pythons = dict.fromkeys(each.executable for each in report.seen.missing)
    said = [texts.label("run-missing", path=python) for python in pythons]
    if report.instead:
        said.append(texts.label("run-instead"))
    return [Row(text=text) for text in said]


def _unobserved(pythons: Sequence[Unobserved], texts: Texts) -> list[Row]:
    rows = [
        texts.label(
            "run-unobserved-option" if each.option else "run-unobserved",
            program=" ".join(each.words),
            option=each.option,
        )
        for each in pythons[:SHOWN_PYTHONS]
    ]
    more = len(pythons) - SHOWN_PYTHONS
    return [Row(text=text) for text in [*rows, *([f"(+{more})"] if more > 0 else [])]]


def _imports(libraries: Sequence[ImportedLibrary], texts: Texts) -> list[Row]:
    said = [
        texts.label("run-import-failed", name=each.name, error=each.error)
        if each.error
        else texts.label(
            "run-library",
            name=each.name,
            version=each.version or "?",
            file=each.file,
            available=", ".join(each.available) or "?",
        )
        for each in libraries
    ]
    return [Row(text=text) for text in dict.fromkeys(said)]


def _torches(torches: Sequence[TorchState], texts: Texts) -> list[Row]:
    said = [
        texts.label(
            "run-torch-used" if each.used else "run-torch-unused",
            version=each.version,
            cuda=each.cuda or "-",
            device=each.device or "?",
        )
        for each in torches
    ]
    return [Row(text=text) for text in dict.fromkeys(said)]


def _group_section(advised: Advised, texts: Texts) -> Section:
    group = advised.group
    rows = [
        Row(
            head=texts.label("run-verdict"),
            text=texts.verdict(f"session-{group.verdict}"),
            style=STYLES.get(group.verdict, "yellow"),
        )
    ]
    rows += [Row(head=head, text=text) for head, text in group_rows(advised, texts) if text]
    count, maker = len(group.sessions), _maker(group, texts)
    return Section(heading=texts.label("run-maker", maker=maker, count=count), rows=tuple(rows))


def group_rows(advised: Advised, texts: Texts) -> list[tuple[str, str]]:
    """Return what is reported of alike sessions: heads and texts, of which some are empty."""
    group, first = advised.group, advised.group.first
    models = [PurePath(name).name or name for name in group.models]
    more = f" (+{len(models) - SHOWN_MODELS})" if len(models) > SHOWN_MODELS else ""
    why = [*dict.fromkeys(each.cause for each in group.why)]
    if group.not_in_build:
        missing = ", ".join(group.not_in_build)
        available = ", ".join(first.available)
        why.insert(0, texts.label("run-not-in-build", missing=missing, available=available))
    if not why and group.verdict == "asked-not-got":
        lines = [line.strip() for line in (*first.words.splitlines(), *first.errors)]
        why = [line for line in lines if line][-SHOWN_WORDS:] or [texts.label("run-silent")]
    elif first.got is None or group.verdict == "never-asked":
        error = "\n".join(first.errors[-1:])
        why += [line for line in error.splitlines() if line.strip()][:SHOWN_WORDS]
    rows = [
        (texts.label("run-called-by"), _callers(group)),
        (texts.label("run-model"), ", ".join(models[:SHOWN_MODELS]) + more),
        (texts.label("run-asked"), _asked(first, texts)),
        (texts.label("run-got"), _got(first, texts)),
        *((texts.label("run-why"), each) for each in why),
        (texts.label("run-created"), milliseconds(group.create_ms)),
        (texts.label("run-runs"), _runs(group, texts)),
    ]
    if group.copies:
        rows.append((texts.label("model-copies"), texts.label("run-copies", count=group.copies)))
    advice = (texts.advice(each, command=advised.command) for each in advised.advice)
    return rows + [(texts.label("run-advice"), text) for text in advice]


def _maker(group: SessionGroup, texts: Texts) -> str:
    maker = group.made.maker
    if maker is None:
        return texts.label("run-maker-unknown")
    place = f"{maker.frame.file}:{maker.frame.line}"
    return f"{maker.name} {maker.version} {place}" if maker.name else place


def _callers(group: SessionGroup) -> str:
    said = [f"{each.name} {each.version}" for each in group.made.via if each.name]
    caller = group.made.caller
    if caller and (group.made.maker is None or caller != group.made.maker.frame):
        said.append(f"{caller.file}:{caller.line}")
    return ", ".join(said)


def _model(session: InferenceSession) -> str:
    return PurePath(session.model).name if session.model else session.graph or "?"


def _asked(session: InferenceSession, texts: Texts) -> str:
    if session.asked is None:
        return texts.label("run-by-options" if session.by_options else "run-nothing")
    said = []
    for each in session.asked:
        options = ", ".join(f"{key}={value}" for key, value in each.options.items())
        said.append(f"{each.name} ({options})" if options else each.name)
    return ", ".join(said) or "[]"


def _got(session: InferenceSession, texts: Texts) -> str:
    return texts.label("run-not-made") if session.got is None else ", ".join(session.got)


def _runs(group: SessionGroup, texts: Texts) -> str:
    busiest = max((each.runs for each in group.sessions), key=lambda runs: runs.times)
    if not busiest.times:
        return texts.label("run-never-ran") if group.first.library == "onnxruntime" else ""
    return texts.label(
        "run-times",
        runs=sum(each.runs.times for each in group.sessions),
        first=milliseconds(busiest.first_ms),
        later=milliseconds(busiest.later_ms),
        shapes=busiest.shapes or "?",
        fresh=milliseconds(busiest.fresh_ms),
        threads=busiest.threads,
    )


def program_json(report: ProgramReport, texts: Texts) -> dict[str, object]:
    """Return the report as one document (`data/run.schema.json`)."""
    ended = report.status
    return {
        "schema": 1,
        "command": report.command,
        "exit": {"code": max(ended, 0) if ended >= 0 else None, "signal": -min(ended, 0) or None},
        "verdict": report.verdict,
        "text": _program_text(report, texts),
        "unobserved": [
            {"words": [*each.words], "option": each.option or None}
            for each in report.seen.unobserved
        ],
        "processes": [each._asdict() for each in report.seen.processes],
        "libraries": [
            {
                **each._asdict(),
                "available": [*each.available],
                "error": each.error or None,
                "archive": each.archive or None,
            }
            for each in report.seen.libraries
        ],
        "missing": [each._asdict() for each in report.seen.missing],
        "torch": [each._asdict() for each in report.seen.torches],
        "sessions": [_group_json(each, texts) for each in report.groups],
        "printed": [{"code": each.code, "text": each.cause} for each in report.printed],
        "commands": _commands(report),
    }


def _group_json(advised: Advised, texts: Texts) -> dict[str, object]:
    group, first = advised.group, advised.group.first
    maker, caller = group.made.maker, group.made.caller
    return {
        "verdict": group.verdict,
        "text": texts.verdict(f"session-{group.verdict}"),
        "count": len(group.sessions),
        "pids": sorted({each.pid for each in group.sessions}),
        "library": first.library,
        "package": maker.name or None if maker else None,
        "version": maker.version or None if maker else None,
        "file": maker.frame.file if maker else None,
        "line": maker.frame.line if maker else None,
        "via": [{"name": each.name, "version": each.version} for each in group.made.via],
        "caller": {"file": caller.file, "line": caller.line} if caller else None,
        "models": list(group.models),
        "asked": None if first.asked is None else [each._asdict() for each in first.asked],
        "got": None if first.got is None else list(first.got),
        "options": first.options,
        "available": list(first.available),
        "why": [
            *({"code": "not-in-build", "text": name} for name in group.not_in_build),
            *({"code": each.code, "text": each.cause} for each in group.why),
        ],
        "words": first.words,
        "errors": list(first.errors),
        "create_ms": group.create_ms,
        "copies": group.copies,
        "runs": [_runs_json(each.runs) for each in group.sessions],
        "knobs": [each._asdict() for each in advised.knobs],
        "advice": [
            {"code": each.code, "text": texts.advice(each, command=advised.command)}
            for each in advised.advice
        ],
    }


def _runs_json(runs: Runs) -> dict[str, object]:
    return {**runs._asdict(), "inputs": {name: list(row) for name, row in runs.inputs.items()}}
