"""Reads what the check in the target environment printed.

`smoke` prints one JSON object a line, its `event`.
"""

from __future__ import annotations

import re

from ..utils.json_reader import LenientObject, read_rows
from .smoke_result import (
    TOLERANCE,
    LoadedLibrary,
    ModelRun,
    NeededLibrary,
    SmokeResult,
    TorchResult,
    TorchRun,
)

_HOST = re.compile(r" ?;? hostname=\S+")
_VERSION = re.compile(r"\d+(\.\d+)?")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def parse_smoke_output(stdout: str, stderr: str) -> SmokeResult:
    """Read what the child printed, as far as it came."""
    events: dict[str, LenientObject] = {}
    models: list[ModelRun] = []
    torch_runs: list[TorchRun] = []
    for row in read_rows(stdout):
        name = row.text("event")
        if name is not None:
            events[name] = row
            if name == "model":
                models.append(_model(row))
            if name == "torch-run":
                torch_runs.append(_torch_run(row))
    nothing = LenientObject({})
    present, torch = events.get("torch-found", nothing), events.get("torch")
    build, driver = events.get("onnxruntime", nothing), events.get("driver", nothing)
    needed, doing = events.get("needed", nothing), events.get("doing", nothing)
    step = filter(None, [doing.text("what"), doing.text("model"), doing.text("gpu")])
    cuda = needed.matching("cuda", _VERSION) or build.matching("cuda", _VERSION)
    return SmokeResult(
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
            NeededLibrary(
                name=row.text("name") or "",
                error=row.text("error"),
                helped=row.text("helped") is not None,
                optional=row.flag("optional"),
            )
            for row in needed.rows("libraries")
        ),
        models=tuple(models),
        libraries=tuple(
            LoadedLibrary(name=row.text("name") or "", path=row.text("path") or "")
            for row in events.get("loaded", nothing).rows("libraries")
        ),
        torch_version=present.text("version"),
        torch_cuda=present.matching("cuda", _VERSION),
        torch=None
        if torch is None
        else TorchResult(
            error=torch.text("error"),
            unavailable=torch.text("unavailable"),
            runs=tuple(torch_runs),
        ),
        log=_COLOURS.sub("", stderr),
    )


def _model(row: LenientObject) -> ModelRun:
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


def _torch_run(row: LenientObject) -> TorchRun:
    return TorchRun(
        gpu=row.text("gpu"),
        product=row.number("product"),
        convolution=row.number("convolution"),
        error=row.text("error"),
    )
