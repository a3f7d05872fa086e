"""What was told of a program's sessions: lines of JSON in, values out.

Core. The lines are written by `children/`, in the processes of the program; a process that was
killed may leave half a line, which is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class Frame(NamedTuple):
    """A place in a program."""

    file: str
    line: int
    function: str


class Asked(NamedTuple):
    """A provider, or the device of another library, that a session was asked to use."""

    name: str
    options: Mapping[str, str] = {}


class Runs(NamedTuple):
    """How a session ran, in one process or in all of them. Times in milliseconds."""

    times: int = 0
    first_ms: float | None = None
    fresh_ms: float | None = None
    """The median of those, after the first, whose inputs had shapes that are new."""
    later_ms: float | None = None
    """The median of the others."""
    shapes: int = 0
    inputs: Mapping[str, tuple[int, ...]] = {}
    """The shapes of the first run, by the names of the inputs."""
    threads: int = 0


NEVER = Runs()


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceSession:
    """One session, or a model of another library."""

    id: str
    pid: int
    library: str = "onnxruntime"
    asked: tuple[Asked, ...] | None = None
    """None: no provider was named."""
    by_options: bool = False
    """The session's options hold providers, whose names nobody tells."""
    got: tuple[str, ...] | None = None
    """None: it could not be made."""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What was used of each provider that it got, besides the CPU's."""
    available: tuple[str, ...] = ()
    """What the build has."""
    model: str | None = None
    """The path; None where it was given as bytes."""
    size: int | None = None
    """Of a model that was given as bytes."""
    graph: str | None = None
    create_ms: float | None = None
    frames: tuple[Frame, ...] = ()
    """Who made it, the innermost first, outside of the library."""
    words: str = ""
    """What came on standard error while it was made."""
    errors: tuple[str, ...] = ()
    """What was raised; onnxruntime may have gone on without the provider."""
    runs: Runs = NEVER


class PythonProcess(NamedTuple):
    """A Python that the program is, or has started."""

    pid: int
    parent: int
    python: str
    program: str
    """Without its arguments: `app.py`, `-m app`."""


class ImportedLibrary(NamedTuple):
    """A library that makes sessions, imported in a process."""

    pid: int
    name: str
    version: str
    file: str
    executable: str = ""
    """The interpreter of the process."""
    available: tuple[str, ...] = ()
    error: str = ""
    """Why it could not be imported."""


class TorchState(NamedTuple):
    """What torch was like at the end of a process."""

    pid: int
    version: str
    cuda: str | None
    used: bool
    device: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSeen:
    """What was seen of a program."""

    processes: tuple[PythonProcess, ...] = ()
    libraries: tuple[ImportedLibrary, ...] = ()
    sessions: tuple[InferenceSession, ...] = ()
    torches: tuple[TorchState, ...] = ()


def parse_events(lines: Iterable[str]) -> ProgramSeen:
    """Return what the lines of all processes tell; each process's are in their order."""
    told: dict[str, list[dict[str, Any]]] = {}
    for each in _documents(lines):
        told.setdefault(str(each.get("event")), []).append(each)
    sessions = {str(each.get("id")): _session(each) for each in told.get("session", ())}
    for change in told.get("providers", ()):
        if found := sessions.get(str(change.get("id"))):
            sessions[found.id] = _changed(found, change)
    runs: dict[str, dict[int, Runs]] = {}
    for each in told.get("runs", ()):  # a later line holds all that an earlier one of it held
        runs.setdefault(str(each.get("id")), {})[_pid(each)] = _runs(each)
    libraries = {(_pid(each), each.get("name")): each for each in told.get("library", ())}
    torches = {_pid(each): each for each in told.get("torch", ())}
    return ProgramSeen(
        processes=tuple(map(_process, told.get("process", ()))),
        libraries=tuple(map(_library, libraries.values())),
        sessions=tuple(
            replace(session, runs=_together([*runs.get(name, {}).values()]))
            for name, session in sessions.items()
        ),
        torches=tuple(map(_torch, torches.values())),
    )


def _pid(each: Mapping[str, Any]) -> int:
    return int(each.get("pid", 0))


def _process(each: Mapping[str, Any]) -> PythonProcess:
    parent = int(each.get("parent", 0))
    return PythonProcess(_pid(each), parent, str(each.get("python")), str(each.get("program")))


def _library(each: Mapping[str, Any]) -> ImportedLibrary:
    return ImportedLibrary(
        pid=_pid(each),
        name=str(each.get("name")),
        version=str(each.get("version") or ""),
        file=str(each.get("file") or ""),
        executable=str(each.get("executable") or ""),
        available=tuple(map(str, each.get("available") or ())),
        error=str(each.get("error") or ""),
    )


def _torch(each: Mapping[str, Any]) -> TorchState:
    version, used = str(each.get("version")), bool(each.get("used"))
    return TorchState(_pid(each), version, each.get("cuda"), used, each.get("device"))


def _documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            each = json.loads(line)
        except ValueError:  # the last line of a process that was killed
            continue
        if isinstance(each, dict):
            yield each


def _session(each: Mapping[str, Any]) -> InferenceSession:
    got = each.get("got")
    errors = [*each.get("errors", ()), each["error"]] if "error" in each else each.get("errors", ())
    return InferenceSession(
        id=str(each.get("id")),
        pid=_pid(each),
        library=str(each.get("library")),
        asked=_asked(each.get("asked")),
        by_options=bool(each.get("by_options")),
        got=None if got is None else tuple(map(str, got)),
        options=dict(each.get("options") or {}),
        available=tuple(map(str, each.get("available") or ())),
        model=each.get("model"),
        size=each.get("bytes"),
        graph=each.get("graph"),
        create_ms=each.get("ms"),
        frames=tuple(Frame(row[0], row[1], row[2]) for row in each.get("frames") or ()),
        words=str(each.get("words") or ""),
        errors=tuple(dict.fromkeys(map(str, errors))),
    )


def _asked(rows: Any) -> tuple[Asked, ...] | None:  # noqa: ANN401 - of JSON
    return None if rows is None else tuple(Asked(str(row[0]), row[1]) for row in rows)


def _changed(session: InferenceSession, change: Mapping[str, Any]) -> InferenceSession:
    """Return a session after `set_providers`: the program's own, or onnxruntime's in a failed run.

    The latter changes what it got, and not what the program asked for.
    """
    got = change.get("got")
    failed = [str(each) for each in (*change.get("errors", ()), change.get("failed")) if each]
    asked = _asked(change.get("asked")) if change.get("by_user") else session.asked
    return replace(
        session,
        asked=asked,
        got=session.got if got is None else tuple(map(str, got)),
        options=dict(change.get("options") or {}),
        words=session.words + str(change.get("words") or ""),
        errors=(*session.errors, *failed),
    )


def _runs(each: Mapping[str, Any]) -> Runs:
    inputs = {name: tuple(sizes) for name, sizes in (each.get("inputs") or {}).items()}
    return Runs(
        times=int(each.get("runs", 0)),
        first_ms=each.get("first_ms"),
        fresh_ms=each.get("fresh_ms"),
        later_ms=each.get("later_ms"),
        shapes=int(each.get("shapes", 0)),
        inputs=inputs,
        threads=int(each.get("threads", 0)),
    )


def _together(runs: list[Runs]) -> Runs:
    """Return the runs of a session that ran in several processes: those of forks, added up."""
    if len(runs) < 2:  # noqa: PLR2004 - nothing to add
        return runs[0] if runs else NEVER
    most = max(runs, key=lambda each: each.times)
    return most._replace(
        times=sum(each.times for each in runs),
        shapes=max(each.shapes for each in runs),
        threads=sum(each.threads for each in runs),
    )
