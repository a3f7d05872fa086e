"""Reads what the child that measures printed.

Core. `measure` prints one JSON object a line, its `event`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..utils.json_reader import LenientObject, read_rows
from .measurement import (
    Failed,
    Made,
    Measurement,
    NodeEvent,
    OutputRow,
    Shape,
    Tensor,
    shapes_of,
    sizes_of,
)
from .smoke_result import LoadedLibrary

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def parse_measurement(stdout: str, stderr: str = "") -> Measurement:
    """Read what the child printed, as far as it came."""
    found = Measurement(log=_COLOURS.sub("", stderr))
    for row in read_rows(stdout):
        take(found, row)
    return found


def take(found: Measurement, row: LenientObject) -> None:
    """Add one event to what was found."""
    handler = _HANDLERS.get(row.text("event") or "")
    if handler:
        handler(found, row)


def _take_step(found: Measurement, row: LenientObject) -> None:
    shape = row.integer("shape")
    place = f"shape {shape + 1}" if shape is not None else None
    found.step = " ".join(filter(None, [row.text("what"), row.text("key"), place]))


def _take_start(found: Measurement, row: LenientObject) -> None:
    found.processors = row.integer("processors")


def _take_gpu(found: Measurement, row: LenientObject) -> None:
    found.gpu = row.text("name")


def _take_release(found: Measurement, row: LenientObject) -> None:
    found.release, found.numpy = row.text("version"), row.text("numpy")


def _take_model(found: Measurement, row: LenientObject) -> None:
    found.inputs = tuple(_tensor(each) for each in row.rows("inputs"))
    found.outputs = tuple(_tensor(each) for each in row.rows("outputs"))
    found.threads = row.integer("threads")


def _take_shapes(found: Measurement, row: LenientObject) -> None:
    found.shapes = tuple(shapes_of(dict(each.items())) for each in row.rows("shapes"))
    found.given = row.flag("given")


def _take_skipped(found: Measurement, row: LenientObject) -> None:
    found.skipped += (row.text("error") or "",)


def _take_refused(found: Measurement, row: LenientObject) -> None:
    found.refused = (row.text("code") or "", row.mapping("values"))


def _take_session(found: Measurement, row: LenientObject) -> None:
    providers = tuple(str(name) for name in row.values("providers") or ())
    made = Made(create_ms=row.number("create_ms") or 0.0, providers=providers)
    found.made[row.text("key") or ""] = made


def _take_times(found: Measurement, row: LenientObject) -> None:
    where = (row.text("key") or "", row.integer("shape") or 0, row.text("kind") or "")
    found.times.setdefault(where, []).append(_numbers(row.values("ms")))


def _take_outputs(found: Measurement, row: LenientObject) -> None:
    where = (row.text("key") or "", row.integer("shape") or 0)
    found.compared[where] = tuple(_output(each) for each in row.rows("outputs"))


def _take_repeated(found: Measurement, row: LenientObject) -> None:
    found.repeated = tuple(_output(each) for each in row.rows("outputs"))


def _take_memory(found: Measurement, row: LenientObject) -> None:
    found.memory[row.text("key") or ""] = row.integer("bytes") or 0


def _take_profile(found: Measurement, row: LenientObject) -> None:
    found.events[row.text("key") or ""] = tuple(_event(each) for each in row.rows("events"))


def _take_failed(found: Measurement, row: LenientObject) -> None:
    error = row.text("error") or ""
    found.failed += (Failed(key=row.text("key") or "", shape=row.integer("shape"), error=error),)


def _take_libraries(found: Measurement, row: LenientObject) -> None:
    found.libraries = tuple(
        LoadedLibrary(
            name=each.text("name") or "",
            path=each.text("path") or "",
            version=each.text("version"),
        )
        for each in row.rows("libraries")
    )


def _take_end(found: Measurement, _row: LenientObject) -> None:
    found.ended = True


_HANDLERS: Mapping[str, Callable[[Measurement, LenientObject], None]] = {
    "doing": _take_step,
    "start": _take_start,
    "gpu": _take_gpu,
    "onnxruntime": _take_release,
    "model": _take_model,
    "shapes": _take_shapes,
    "skipped": _take_skipped,
    "refused": _take_refused,
    "session": _take_session,
    "times": _take_times,
    "outputs": _take_outputs,
    "repeated": _take_repeated,
    "memory": _take_memory,
    "profile": _take_profile,
    "failed": _take_failed,
    "loaded": _take_libraries,
    "end": _take_end,
}


def _numbers(values: Sequence[object] | None) -> tuple[float, ...]:
    return tuple(float(value) for value in values or () if isinstance(value, (int, float)))


def _tensor(row: LenientObject) -> Tensor:
    shape = tuple(
        size if isinstance(size, (int, str)) else None for size in row.values("shape") or ()
    )
    return Tensor(name=row.text("name") or "", type=row.text("type") or "", shape=shape)


def _output(row: LenientObject) -> OutputRow:
    return OutputRow(
        name=row.text("name") or "",
        type=row.text("type") or "",
        shape=sizes_of(row.values("shape")),
        deviation=row.number("deviation"),
        problem=row.text("problem"),
    )


def _event(row: LenientObject) -> NodeEvent:
    outputs = [pair for each in row.rows("output_type_shape") for pair in each.items()]
    size = row.text("output_size") or ""
    return NodeEvent(
        name=re.sub(r"_kernel_time$", "", row.text("name") or ""),
        op=row.text("op_name") or "",
        provider=row.text("provider") or "",
        microseconds=row.integer("us") or 0,
        output_bytes=int(size) if size.isdigit() else 0,
        types=tuple(kind for kind, _ in outputs),
        elements=max((_product(sizes_of(sizes)) for _, sizes in outputs), default=0),
    )


def _product(sizes: Shape) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
