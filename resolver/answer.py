"""What the check in the target environment said: its lines read into values.

Core. `smoke` prints one JSON object a line; whatever else stands there is passed over, because
the target's own code may print too. `verdict` judges what stands here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

GPU = "CUDAExecutionProvider"
TOLERANCE = 1e-3
"""Of the largest number expected. The models' numbers are exact in TF32, so this is generous."""
DRIVER_FILE = re.compile(r"libcuda\.so|nvcuda\.dll|libnvidia-")
"""The driver's own libraries: no wheel brings them."""
DRIVER_SYMBOL = re.compile(r"undefined symbol: cu[A-Z]")
"""A function that a library expects of the driver's, and an old driver does not have."""
CUDA_FAILURE = re.compile(r"CUDA failure (\d+): ([^;\n]*[^;\s])")
_HOST = re.compile(r" ?;? hostname=\S+")
_VERSION = re.compile(r"\d+(\.\d+)?")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """One model: where its nodes ran, how right the result was, how long it took."""

    name: str
    gpu: str | None = None
    """`NVIDIA H200 (9.0)`; None where the driver offers none."""
    nodes: tuple[tuple[str, str], ...] = ()
    """Operator and provider, of each node that ran."""
    deviation: float | None = None
    """The largest difference from what must come out, as a part of the largest number."""
    correct: bool | None = None
    """None where nothing came out."""
    create_ms: float | None = None
    first_ms: float | None = None
    second_ms: float | None = None
    """The second run at the same shape: what the model costs from then on."""
    error: str | None = None

    @property
    def on_gpu(self) -> bool:
        """Tell whether everything but the copying ran on the GPU."""
        ran = [provider for op, provider in self.nodes if not op.startswith("Memcpy")]
        return bool(ran) and all(provider == GPU for provider in ran)

    @property
    def label(self) -> str:
        """Return the model and where it ran: `conv on NVIDIA H200 (9.0)`."""
        return f"{self.name} on {self.gpu}" if self.gpu else self.name

    def lines(self) -> list[str]:
        """Return what happened, in a line or two."""
        lines = []
        if self.error:
            failure = CUDA_FAILURE.search(self.error)
            lines.append(f"{self.label}: {failure.group(0) if failure else self.error[:400]}")
        if self.nodes:
            nodes = ", ".join(f"{op} on {provider}" for op, provider in self.nodes)
            times = f"{self.first_ms} ms, then {self.second_ms} ms"
            lines.append(f"{self.label}: {nodes}; off by {self.deviation}; {times}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A CUDA-side library that the process had loaded, and from which file."""

    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A library that the provider needs, and how loading it went."""

    name: str
    error: str | None
    helped: bool
    """Only the check's own help loaded it, from a wheel."""
    optional: bool

    @property
    def driver(self) -> bool:
        """Tell whether it is the driver that is missing: the library is its own, or needs it."""
        error = self.error or ""
        own = error and DRIVER_FILE.match(self.name)
        return bool(own or DRIVER_FILE.match(error) or DRIVER_SYMBOL.search(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that the child said before it ended."""

    ended: bool
    """True where it came to its own end."""
    plain: bool
    visible: str | None
    """CUDA_VISIBLE_DEVICES, where it is set."""
    step: str
    """What it was doing last."""
    version: str | None
    """Of onnxruntime."""
    origin: str | None
    """The file that was imported as `onnxruntime`; None where the folder is gutted."""
    import_error: str | None
    usable: bool
    """onnxruntime could be imported, and is whole."""
    cuda: str | None
    """The CUDA major that the build needs."""
    driver_library: str | None
    driver_cuda: str | None
    driver_init: int | None
    """What cuInit answered: 0 is success, 100 no GPU."""
    driver_error: str | None
    preload_error: str | None
    needed: tuple[Needed, ...]
    models: tuple[ModelRun, ...]
    libraries: tuple[Loaded, ...]
    log: str
    """Its standard error, without colours."""

    @property
    def absent(self) -> tuple[Needed, ...]:
        """Return what the provider cannot do without and is missing, the driver excepted."""
        return tuple(
            library
            for library in self.needed
            if library.error and not library.optional and not library.driver
        )

    @property
    def helped(self) -> tuple[str, ...]:
        """Return the libraries that only the check's own help could load."""
        return tuple(library.name for library in self.needed if library.helped)

    def lines(self) -> list[str]:
        """Return what each step found, a line each."""
        lines = []
        if self.import_error:
            lines.append(f"onnxruntime cannot be imported: {self.import_error}")
        elif self.version:
            lines.append(f"onnxruntime {self.version} from {self.origin}")
        if self.driver_error:
            lines.append(f"driver: {self.driver_error}")
        elif self.driver_library:
            started = f"CUDA {self.driver_cuda}, cuInit {self.driver_init}"
            lines.append(f"driver: {self.driver_library}, {started}")
        if self.visible is not None:
            lines.append(f"CUDA_VISIBLE_DEVICES={self.visible!r}")
        if self.preload_error:
            lines.append(f"preload_dlls: {self.preload_error}")
        lines += [f"{library.name}: {library.error}" for library in self.needed if library.error]
        return lines + [line for run in self.models for line in run.lines()]


def read(stdout: str, stderr: str) -> Answer:
    """Read what the child printed, as far as it came."""
    events: dict[str, _Row] = {}
    models: list[ModelRun] = []
    for line in stdout.splitlines():
        row = _Row(_object(line))
        name = row.text("event")
        if name is not None:
            events[name] = row
            if name == "model":
                models.append(_model(row))
    nothing = _Row({})
    build, driver = events.get("onnxruntime", nothing), events.get("driver", nothing)
    needed, doing = events.get("needed", nothing), events.get("doing", nothing)
    step = filter(None, [doing.text("what"), doing.text("model"), doing.text("gpu")])
    cuda = needed.matching("cuda", _VERSION) or build.matching("cuda", _VERSION)
    return Answer(
        ended="end" in events or (build is not nothing and not build.flag("whole")),
        plain=events.get("start", nothing).flag("plain"),
        visible=events.get("start", nothing).text("visible"),
        step=" ".join(step) or "start",
        version=build.text("version"),
        origin=build.text("file"),
        import_error=build.text("error"),
        usable=build.flag("whole"),
        cuda=cuda.partition(".")[0] if cuda else None,
        driver_library=driver.text("library"),
        driver_cuda=driver.matching("cuda", _VERSION),
        driver_init=driver.integer("init"),
        driver_error=driver.text("error"),
        preload_error=events.get("preloaded", nothing).text("error"),
        needed=tuple(
            Needed(
                name=row.text("name") or "",
                error=row.text("error"),
                helped=row.text("helped") is not None,
                optional=row.flag("optional"),
            )
            for row in needed.rows("libraries")
        ),
        models=tuple(models),
        libraries=tuple(
            Loaded(name=row.text("name") or "", path=row.text("path") or "")
            for row in events.get("loaded", nothing).rows("libraries")
        ),
        log=_COLOURS.sub("", stderr),
    )


def _model(row: _Row) -> ModelRun:
    deviation, error = row.number("deviation"), row.text("error")
    correct = deviation is not None and deviation <= TOLERANCE
    return ModelRun(
        name=row.text("name") or "",
        gpu=row.text("gpu"),
        nodes=tuple(
            (node.text("op") or "", node.text("provider") or "") for node in row.rows("nodes")
        ),
        deviation=deviation,
        correct=correct if row.has("deviation") else None,
        create_ms=row.number("create_ms"),
        first_ms=row.number("first_ms"),
        second_ms=row.number("second_ms"),
        error=_HOST.sub("", error) if error else None,
    )


def _object(line: str) -> Mapping[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


class _Row:
    """A JSON object of which nothing is believed before it was looked at."""

    def __init__(self, value: Mapping[str, object]) -> None:
        self._value = value

    def has(self, key: str) -> bool:
        return key in self._value

    def text(self, key: str) -> str | None:
        value = self._value.get(key)
        return value if isinstance(value, str) else None

    def matching(self, key: str, form: re.Pattern[str]) -> str | None:
        value = self.text(key)
        return value if value and form.fullmatch(value) else None

    def flag(self, key: str) -> bool:
        return self._value.get(key) is True

    def integer(self, key: str) -> int | None:
        value = self._value.get(key)
        return value if isinstance(value, int) else None

    def number(self, key: str) -> float | None:
        value = self._value.get(key)
        return float(value) if isinstance(value, (int, float)) else None

    def rows(self, key: str) -> list[_Row]:
        value = self._value.get(key)
        rows = cast("list[object]", value) if isinstance(value, list) else []
        return [_Row(cast("Mapping[str, object]", row)) for row in rows if isinstance(row, dict)]
