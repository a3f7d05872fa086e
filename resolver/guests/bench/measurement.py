"""What was measured of one model, as values: what `measure` printed, one JSON object a line.

Core. `model_verdict` and `bench` judge it. Times are milliseconds of whole runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...utils.json_reader import Events, LenientObject
from ...utils.record_reader import read_record
from ...verify.smoke_output import without_colours
from ...verify.verification import HOST
from ...versions import count

CPU = "cpu"
"""The key of the configuration that every other one is compared with."""
Shape = tuple[int, ...]
Shapes = tuple[tuple[str, Shape], ...]
"""Each input's name and sizes."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All that the child said, as far as it came."""

    ended: bool = False
    step: str = "start"
    """What it was doing last."""
    release: str | None = None
    """Of onnxruntime."""
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
    made: Mapping[str, Made] = field(default_factory=dict)
    times: Mapping[tuple[str, int, str], list[tuple[float, ...]]] = field(default_factory=dict)
    """By configuration, shape and kind (`first`, `warm`, `steady`, `changed`)."""
    compared: Mapping[tuple[str, int], tuple[OutputRow, ...]] = field(default_factory=dict)
    repeated: tuple[OutputRow, ...] = ()
    """The CPU compared with itself: what deviates here is random."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes that the GPU had less after the runs than before the session."""
    events: Mapping[str, tuple[NodeEvent, ...]] = field(default_factory=dict)
    broken_names: int = 0
    """Node names that break onnxruntime's own profile, and were read as they stand."""
    failed: tuple[Failed, ...] = ()
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
    events = Events(stdout)
    versions, model, shapes = (events.last(event) for event in ("onnxruntime", "model", "shapes"))
    refused, profiles = events.last("refused"), events.all("profile")
    times: dict[tuple[str, int, str], list[tuple[float, ...]]] = {}
    for event in events.all("times"):
        ms = tuple(float(ms) for ms in event.values("ms") or () if isinstance(ms, int | float))
        times.setdefault((*_place(event), event.text("kind") or ""), []).append(ms)
    return Measurement(
        ended="end" in events,
        step=_step(events.last("doing")) if "doing" in events else "start",
        release=versions.text("version"),
        gpu=events.last("gpu").text("name"),
        processors=events.last("start").integer("processors"),
        threads=model.integer("threads"),
        inputs=tuple(map(_tensor, model.rows("inputs"))),
        outputs=tuple(map(_tensor, model.rows("outputs"))),
        shapes=tuple(shapes_of(dict(each.items())) for each in shapes.rows("shapes")),
        given=shapes.flag("given"),
        skipped=tuple(event.text("error") or "" for event in events.all("skipped")),
        refused=(refused.text("code") or "", refused.mapping("values"))
        if "refused" in events
        else None,
        made={
            _key(event): read_record(Made, event, providers=event.texts("providers"))
            for event in events.all("session")
        },
        times=times,
        compared={_place(event): _outputs(event) for event in events.all("outputs")},
        repeated=_outputs(events.last("repeated")),
        memory={_key(event): event.integer("bytes") or 0 for event in events.all("memory")},
        events={_key(profile): tuple(map(_event, profile.rows("events"))) for profile in profiles},
        broken_names=max((profile.integer("broken") or 0 for profile in profiles), default=0),
        failed=tuple(
            read_record(Failed, event, error=HOST.sub("", event.text("error") or ""))
            for event in events.all("failed")
        ),
        log=without_colours(stderr),
    )


def _key(event: LenientObject) -> str:
    return event.text("key") or ""


def _place(event: LenientObject) -> tuple[str, int]:
    return _key(event), event.integer("shape") or 0


def _step(event: LenientObject) -> str:
    shape = event.integer("shape")
    place = f"shape {shape + 1}" if shape is not None else None
    return " ".join(filter(None, [event.text("what"), event.text("key"), place]))


def _tensor(event: LenientObject) -> Tensor:
    shape = tuple(
        size if isinstance(size, int | str) else None for size in event.values("shape") or ()
    )
    return read_record(Tensor, event, shape=shape)


def _outputs(event: LenientObject) -> tuple[OutputRow, ...]:
    return tuple(
        read_record(OutputRow, each, shape=sizes_of(each.values("shape")))
        for each in event.rows("outputs")
    )


def _event(event: LenientObject) -> NodeEvent:
    outputs = [pair for each in event.rows("output_type_shape") for pair in each.items()]
    return NodeEvent(
        name=(event.text("name") or "").removesuffix("_kernel_time"),
        op=event.text("op_name") or "",
        provider=event.text("provider") or "",
        microseconds=event.integer("us") or 0,
        output_bytes=count(event.text("output_size") or "") or 0,
        types=tuple(kind for kind, _ in outputs),
        elements=max((math.prod(sizes_of(sizes)) for _, sizes in outputs), default=0),
    )
