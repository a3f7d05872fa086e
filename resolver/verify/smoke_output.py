"""Parse what `smoke` printed: one JSON object a line, each with its `event`."""

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
    """Read the output of the child, which may have ended early."""
    rows = [(row.text("event"), row) for row in read_rows(stdout)]
    events = dict(rows)

    def last(event: str) -> LenientObject:
        return events.get(event, LenientObject({}))

    build, driver, needed = last("onnxruntime"), last("driver"), last("needed")
    step = filter(None, (last("doing").text(key) for key in ("what", "model", "gpu")))
    cuda = needed.matching("cuda", _VERSION) or build.matching("cuda", _VERSION)
    return SmokeResult(
        ended="end" in events or ("onnxruntime" in events and not build.flag("whole")),
        plain=last("start").flag("plain"),
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
            NeededLibrary(
                name=row.text("name") or "",
                error=row.text("error"),
                helped=row.text("helped") is not None,
                optional=row.flag("optional"),
            )
            for row in needed.rows("libraries")
        ),
        models=tuple(_model(row) for event, row in rows if event == "model"),
        libraries=tuple(
            LoadedLibrary(name=row.text("name") or "", path=row.text("path") or "")
            for row in last("loaded").rows("libraries")
        ),
        torch_version=last("torch-found").text("version"),
        torch_cuda=last("torch-found").matching("cuda", _VERSION),
        torch=TorchResult(
            error=last("torch").text("error"),
            unavailable=last("torch").text("unavailable"),
            runs=tuple(_torch_run(row) for event, row in rows if event == "torch-run"),
        )
        if "torch" in events
        else None,
        log=_COLOURS.sub("", stderr.replace("\0", "")),
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
