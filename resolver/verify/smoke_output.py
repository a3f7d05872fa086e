"""What `smoke` printed, as values: one JSON object a line, each with its `event`.

Core. `verdict` judges it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..utils.json_reader import Events, LenientObject
from ..utils.record_reader import read_record
from .verification import (
    GPU,
    HOST,
    TOLERANCE,
    LoadedLibrary,
    ModelRun,
    PlacedNode,
    TorchResult,
    TorchRun,
)

DRIVER_FILE = re.compile(r"libcuda\.so|nvcuda\.dll|libnvidia-|nvml\.dll|nvapi64\.dll")
"""Libraries of the driver, which no wheel contains. TensorRT-RTX links to NVML on Windows:
https://docs.nvidia.com/deploy/nvml-api/nvml-api-reference.html."""
DRIVER_SYMBOL = re.compile(r"undefined symbol: cu[A-Z]")
"""A function that an old driver lacks."""
_VERSION = re.compile(r"\d+(\.\d+)?")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededLibrary:
    """A library that the provider needs, and the error of loading it."""

    name: str
    error: str | None
    helped: bool
    """Only the check itself loaded it, from a wheel."""
    optional: bool

    @property
    def driver(self) -> bool:
        """Return whether the error is due to the driver: the library is part of it, or needs it."""
        error = self.error or ""
        part = error and DRIVER_FILE.match(self.name)
        return bool(part or DRIVER_FILE.match(error) or DRIVER_SYMBOL.search(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """The output of the child."""

    ended: bool
    """True where the child was not ended by a crash or the time limit."""
    plain: bool
    provider: str
    """What the sessions asked for first."""
    visible: str | None
    """CUDA_VISIBLE_DEVICES, where it is set."""
    step: str
    """Its last step."""
    version: str | None
    """Of onnxruntime."""
    origin: str | None
    """The file that was imported as `onnxruntime`; None where the folder has none."""
    import_error: str | None
    usable: bool
    """onnxruntime could be imported, and is complete."""
    cuda: str | None
    """The CUDA major that the build needs."""
    driver_library: str | None
    driver_cuda: str | None
    driver_init: int | None
    """The result of cuInit: 0 is success, 100 no GPU."""
    driver_error: str | None
    preload_error: str | None
    needed: tuple[NeededLibrary, ...]
    models: tuple[ModelRun, ...]
    libraries: tuple[LoadedLibrary, ...]
    torch_version: str | None
    torch_cuda: str | None
    """The CUDA of its build; None for a build for the CPU."""
    torch: TorchResult | None
    log: str
    """The child's standard error, without colours."""

    @property
    def absent(self) -> tuple[NeededLibrary, ...]:
        """Return the required libraries that are missing, except those of the driver."""
        return tuple(
            library
            for library in self.needed
            if library.error and not library.optional and not library.driver
        )

    @property
    def helped(self) -> tuple[str, ...]:
        """Return the libraries that only the check itself could load."""
        return tuple(library.name for library in self.needed if library.helped)

    def lines(self) -> list[str]:
        """Return the observations of each step, a line each."""
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
        lines += [line for run in self.models for line in run.lines()]
        return lines + (self.torch.lines() if self.torch else [])


def parse_smoke_output(stdout: str, stderr: str) -> SmokeResult:
    """Read the output of the child, which may have ended early."""
    events = Events(stdout)
    last = events.last
    build, driver, needed = last("onnxruntime"), last("driver"), last("needed")
    step = filter(None, (last("doing").text(key) for key in ("what", "model", "gpu")))
    cuda = needed.matching("cuda", _VERSION) or build.matching("cuda", _VERSION)
    return SmokeResult(
        ended="end" in events or ("onnxruntime" in events and not build.flag("whole")),
        plain=last("start").flag("plain"),
        provider=last("start").text("provider") or GPU,
        visible=last("start").text("visible"),
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
        preload_error=last("preloaded").text("error"),
        needed=tuple(
            read_record(NeededLibrary, row, helped=row.text("helped") is not None)
            for row in needed.rows("libraries")
        ),
        models=tuple(map(_model, events.all("model"))),
        libraries=loaded_libraries(events),
        torch_version=last("torch-found").text("version"),
        torch_cuda=last("torch-found").matching("cuda", _VERSION),
        torch=read_record(
            TorchResult,
            last("torch"),
            runs=tuple(read_record(TorchRun, row) for row in events.all("torch-run")),
        )
        if "torch" in events
        else None,
        log=without_colours(stderr.replace("\0", "")),
    )


def _model(event: LenientObject) -> ModelRun:
    deviation, error = event.number("deviation"), event.text("error")
    correct = deviation is not None and deviation <= TOLERANCE
    return read_record(
        ModelRun,
        event,
        nodes=tuple(
            PlacedNode(node.text("op") or "", node.text("provider") or "")
            for node in event.rows("nodes")
        ),
        correct=correct if event.has("deviation") else None,
        error=HOST.sub("", error) if error else None,
    )


def without_colours(log: str) -> str:
    """Return what a child wrote on standard error, without colours and the machine's name."""
    return HOST.sub("", _COLOURS.sub("", log))


def loaded_libraries(events: Events) -> tuple[LoadedLibrary, ...]:
    """Return the CUDA libraries that the child had loaded at last."""
    libraries = events.last("loaded").rows("libraries")
    return tuple(read_record(LoadedLibrary, library) for library in libraries)
