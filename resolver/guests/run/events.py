"""What was reported of a program's sessions: lines of JSON in, values out.

Core. The lines are written by `children/`, in the processes of the program; a process that was
killed may leave half a line, which is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from ...utils.json_reader import Events, LenientObject
from ...utils.record_reader import read_record


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
    """The session's options hold providers, whose names nobody reports."""
    got: tuple[str, ...] | None = None
    """None: it could not be made."""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What was used of each provider that it got, besides the CPU's."""
    available: tuple[str, ...] = ()
    """What the build has."""
    looked: bool = False
    """The code that made it had asked which providers the build has."""
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
    archive: str = ""
    """The archive that the process runs, as shiv makes it; it has the library packed."""

    @property
    def makes_none(self) -> bool:
        """Return whether no session can come of it: it is not whole, or another of its name."""
        return self.name == "onnxruntime" and not self.available


class StartedProgram(NamedTuple):
    """A program that one of the Pythons started, and that may not have read our folder."""

    words: tuple[str, ...]
    hooked: bool
    """Its PYTHONPATH has our folder; an option may say that it does not read it."""


class Unobserved(NamedTuple):
    """A Python that nobody could look into."""

    words: tuple[str, ...]
    """How it was started, shortened."""
    option: str
    """The option with which it ignores PYTHONPATH; empty: it did not get ours."""


class MissingLibrary(NamedTuple):
    """A Python that looked for a library, and has none."""

    pid: int
    name: str
    executable: str


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
    missing: tuple[MissingLibrary, ...] = ()
    started: tuple[StartedProgram, ...] = ()
    unobserved: tuple[Unobserved, ...] = ()


def parse_events(lines: Iterable[str]) -> ProgramSeen:
    """Return what the lines of all processes report; each process's are in their order."""
    events = Events("\n".join(lines))
    sessions = {_id(event): _session(event) for event in events.all("session")}
    for change in events.all("providers"):
        if found := sessions.get(_id(change)):
            sessions[found.id] = _changed(found, change)
    runs: dict[str, dict[int, Runs]] = {}
    for event in events.all("runs"):  # a later line holds all that an earlier one of it held
        runs.setdefault(_id(event), {})[_pid(event)] = _runs(event)
    libraries = {(_pid(event), event.text("name")): event for event in events.all("library")}
    torches = {_pid(event): event for event in events.all("torch")}
    return ProgramSeen(
        processes=tuple(read_record(PythonProcess, event) for event in events.all("process")),
        libraries=tuple(read_record(ImportedLibrary, event) for event in libraries.values()),
        sessions=tuple(
            replace(session, runs=_together([*runs.get(name, {}).values()]))
            for name, session in sessions.items()
        ),
        torches=tuple(read_record(TorchState, event) for event in torches.values()),
        missing=tuple(read_record(MissingLibrary, event) for event in events.all("missing")),
        started=tuple(read_record(StartedProgram, event) for event in events.all("start")),
    )


def _id(event: LenientObject) -> str:
    return event.text("id") or ""


def _pid(event: LenientObject) -> int:
    return event.integer("pid") or 0


def _session(event: LenientObject) -> InferenceSession:
    rows = cast("list[list[Any]]", event.values("frames") or [])
    errors = [*event.texts("errors"), *([event.text("error") or ""] if event.has("error") else ())]
    return read_record(
        InferenceSession,
        event,
        asked=_asked(event),
        got=None if event.values("got") is None else event.texts("got"),
        options=_options(event),
        size=event.integer("bytes"),
        create_ms=event.number("ms"),
        frames=tuple(Frame(each[0], each[1], each[2]) for each in rows),
        errors=tuple(dict.fromkeys(errors)),
        runs=NEVER,
    )


def _options(event: LenientObject) -> Mapping[str, Mapping[str, str]]:
    return cast("Mapping[str, Mapping[str, str]]", event.mapping("options"))


def _asked(event: LenientObject) -> tuple[Asked, ...] | None:
    rows = cast("list[list[Any]] | None", event.values("asked"))
    return None if rows is None else tuple(Asked(str(each[0]), each[1]) for each in rows)


def _changed(session: InferenceSession, change: LenientObject) -> InferenceSession:
    """Return a session after `set_providers`: the program's own, or onnxruntime's in a failed run.

    The latter changes what it got, and not what the program asked for.
    """
    failed = (*change.texts("errors"), change.text("failed"))
    return replace(
        session,
        asked=_asked(change) if change.flag("by_user") else session.asked,
        got=session.got if change.values("got") is None else change.texts("got"),
        options=_options(change),
        words=session.words + (change.text("words") or ""),
        errors=(*session.errors, *filter(None, failed)),
    )


def _runs(event: LenientObject) -> Runs:
    inputs = cast("dict[str, list[int]]", event.mapping("inputs"))
    shapes = {name: tuple(sizes) for name, sizes in inputs.items()}
    return read_record(Runs, event, times=event.integer("runs") or 0, inputs=shapes)


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
