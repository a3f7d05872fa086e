"""What was measured of one model, as values.

Core. `measurement_output` reads them, `model_run` and `bench` judge them. Times are milliseconds of
whole runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .smoke_result import LoadedLibrary

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


def sizes_of(values: object) -> Shape:
    """Return the whole numbers of a JSON list."""
    listed = values if isinstance(values, list) else []
    return tuple(size for size in listed if isinstance(size, int))
