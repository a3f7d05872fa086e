"""What was measured of one model, as values: what `measure` printed, one JSON object a line.

Core. `model_verdict` and `bench` judge it. Times are milliseconds of whole runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..utils.json_reader import LenientObject, read_rows
from .records import read_record
from .verification import HOST, LoadedLibrary

CPU = "cpu"
"""The key of the configuration that every other one is compared with."""
Shape = tuple[int, ...]
Shapes = tuple[tuple[str, Shape], ...]
"""Each input's name and sizes."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An input or output as the model declares it."""

    name: str
    type: str
    """`tensor(float)`."""
    shape: tuple[int | str | None, ...]
    """Sizes; a name, or None, where a dimension is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """One execution of a node, from the profile of one run."""

    name: str
    """As the profile has it, without `_kernel_time`; releases differ in what they call a node."""
    op: str
    provider: str
    microseconds: int
    output_bytes: int
    types: tuple[str, ...]
    """Of its outputs: `float`, `int64`."""
    elements: int
    """Of its largest output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRow:
    """How far an output was from what the CPU made of the same inputs."""

    name: str
    type: str
    """`float32`."""
    shape: Shape
    deviation: float | None
    """The largest difference, as a part of the largest number expected (of whole numbers: the part
    that differs); None where they cannot be compared."""
    problem: str | None
    """`shape`, `nan` or `type`: why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A session that was created."""

    create_ms: float
    providers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What a configuration could not do."""

    key: str
    shape: int | None
    """None: the session could not be created, or its profile not be made."""
    error: str


@dataclass(slots=True, kw_only=True)
class Measurement:
    """All that the child said, as far as it came."""

    ended: bool = False
    step: str = "start"
    """What it was doing last."""
    release: str | None = None
    """Of onnxruntime."""
    numpy: str | None = None
    gpu: str | None = None
    """`NVIDIA H200 (9.0)`."""
    processors: int | None = None
    """Those that the process may use."""
    threads: int | None = None
    """With which a run on the CPU computes."""
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    given: bool = False
    """True where the shapes were given, and not found by trying."""
    skipped: tuple[str, ...] = ()
    """Why shapes that were tried as well are not there."""
    refused: tuple[str, Mapping[str, object]] | None = None
    """Why the model was not run at all: a code and its values."""
    made: dict[str, Made] = field(default_factory=dict)
    times: dict[tuple[str, int, str], list[tuple[float, ...]]] = field(default_factory=dict)
    """By configuration, shape and kind (`first`, `warm`, `steady`, `changed`)."""
    compared: dict[tuple[str, int], tuple[OutputRow, ...]] = field(default_factory=dict)
    repeated: tuple[OutputRow, ...] = ()
    """The CPU compared with itself: what deviates here is random."""
    memory: dict[str, int] = field(default_factory=dict)
    """Bytes that the GPU had less after the runs than before the session."""
    events: dict[str, tuple[NodeEvent, ...]] = field(default_factory=dict)
    broken_names: int = 0
    """Node names that break onnxruntime's own profile, and were read as they stand."""
    failed: tuple[Failed, ...] = ()
    libraries: tuple[LoadedLibrary, ...] = ()
    log: str = ""
    """Its standard error, without colours."""

    def all_times(self, key: str, shape: int, kind: str) -> list[float]:
        """Return every time of a kind."""
        return [ms for block in self.times.get((key, shape, kind), []) for ms in block]


def shapes_of(sizes: Mapping[str, object]) -> Shapes:
    """Return the shapes of one run from a JSON object."""
    return tuple((name, sizes_of(each)) for name, each in sizes.items())


def say_shapes(shapes: Shapes) -> str:
    """Return the shapes of one run as `--shape` takes them: `x=1x3x224x224, sr=`."""
    return ", ".join(f"{name}={'x'.join(map(str, sizes))}" for name, sizes in shapes)


def shape_flags(shapes: Shapes) -> str:
    """Return them to be pasted: `--shape x=1x3x224x224 --shape sr=`; the last is a scalar."""
    return " ".join(f"--shape {say_shapes((one,))}" for one in shapes)


def sizes_of(values: object) -> Shape:
    """Return the whole numbers of a JSON list."""
    listed = values if isinstance(values, list) else []
    return tuple(size for size in listed if isinstance(size, int))


def parse_measurement(stdout: str, stderr: str = "") -> Measurement:
    """Read what the child printed, as far as it came."""
    found = Measurement(log=HOST.sub("", _COLOURS.sub("", stderr)))
    for row in read_rows(stdout):
        _take(found, row)
    return found


def _take(found: Measurement, row: LenientObject) -> None:
    """Add an event of the process or the model."""
    match row.text("event"):
        case "doing":
            shape = row.integer("shape")
            place = f"shape {shape + 1}" if shape is not None else None
            found.step = " ".join(filter(None, [row.text("what"), row.text("key"), place]))
        case "start":
            found.processors = row.integer("processors")
        case "gpu":
            found.gpu = row.text("name")
        case "onnxruntime":
            found.release, found.numpy = row.text("version"), row.text("numpy")
        case "model":
            found.inputs = tuple(_tensor(each) for each in row.rows("inputs"))
            found.outputs = tuple(_tensor(each) for each in row.rows("outputs"))
            found.threads = row.integer("threads")
        case "shapes":
            found.shapes = tuple(shapes_of(dict(each.items())) for each in row.rows("shapes"))
            found.given = row.flag("given")
        case "skipped":
            found.skipped += (row.text("error") or "",)
        case "refused":
            found.refused = (row.text("code") or "", row.mapping("values"))
        case "end":
            found.ended = True
        case _:
            _take_run(found, row)


def _take_run(found: Measurement, row: LenientObject) -> None:
    """Add an event of one configuration, or what was loaded."""
    key, shape = row.text("key") or "", row.integer("shape") or 0
    match row.text("event"):
        case "session":
            providers = tuple(str(name) for name in row.values("providers") or ())
            found.made[key] = read_record(Made, row, providers=providers)
        case "times":
            times = tuple(float(ms) for ms in row.values("ms") or () if isinstance(ms, int | float))
            found.times.setdefault((key, shape, row.text("kind") or ""), []).append(times)
        case "outputs":
            found.compared[key, shape] = tuple(_output(each) for each in row.rows("outputs"))
        case "repeated":
            found.repeated = tuple(_output(each) for each in row.rows("outputs"))
        case "memory":
            found.memory[key] = row.integer("bytes") or 0
        case "profile":
            found.events[key] = tuple(_event(each) for each in row.rows("events"))
            found.broken_names = max(found.broken_names, row.integer("broken") or 0)
        case "failed":
            error = HOST.sub("", row.text("error") or "")
            found.failed += (read_record(Failed, row, error=error),)
        case "loaded":
            found.libraries = tuple(
                read_record(LoadedLibrary, each) for each in row.rows("libraries")
            )
        case _:
            pass


def _tensor(row: LenientObject) -> Tensor:
    shape = tuple(
        size if isinstance(size, int | str) else None for size in row.values("shape") or ()
    )
    return read_record(Tensor, row, shape=shape)


def _output(row: LenientObject) -> OutputRow:
    return read_record(OutputRow, row, shape=sizes_of(row.values("shape")))


def _event(row: LenientObject) -> NodeEvent:
    outputs = [pair for each in row.rows("output_type_shape") for pair in each.items()]
    size = row.text("output_size") or ""
    return NodeEvent(
        name=(row.text("name") or "").removesuffix("_kernel_time"),
        op=row.text("op_name") or "",
        provider=row.text("provider") or "",
        microseconds=row.integer("us") or 0,
        output_bytes=int(size) if size.isdigit() else 0,
        types=tuple(kind for kind, _ in outputs),
        elements=max((math.prod(sizes_of(sizes)) for _, sizes in outputs), default=0),
    )
