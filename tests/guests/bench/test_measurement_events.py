"""Each event of the child that measures, with all that it can say and with nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from ortgpu_fix.guests.bench.measurement import (
    Failed,
    Made,
    Measurement,
    NodeEvent,
    OutputRow,
    Tensor,
    parse_measurement,
    say_shapes,
    shape_flags,
    shapes_of,
    sizes_of,
)


def said(*events: dict[str, Any], log: str = "") -> dict[str, Any]:
    """Return the fields that events have changed."""
    found = parse_measurement("\n".join(json.dumps(row) for row in events), log)
    nothing = Measurement()
    return {
        name: getattr(found, name)
        for name in asdict(nothing)
        if getattr(found, name) != getattr(nothing, name)
    }


OUTPUT = {"name": "y", "type": "float32", "shape": [1, 3], "deviation": 0.5, "problem": "nan"}
ROW = OutputRow(name="y", type="float32", shape=(1, 3), deviation=0.5, problem="nan")
NODE = {
    "name": "conv_kernel_time",
    "op_name": "Conv",
    "provider": "CUDAExecutionProvider",
    "us": 12,
    "output_size": "4096",
    "output_type_shape": [{"float": [2, 3, 4]}, {"int64": [50]}],
}
EVENT = NodeEvent(
    name="conv",
    op="Conv",
    provider="CUDAExecutionProvider",
    microseconds=12,
    output_bytes=4096,
    types=("float", "int64"),
    elements=50,
)


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        ({"event": "doing", "what": "run", "key": "cpu", "shape": 0}, {"step": "run cpu shape 1"}),
        ({"event": "doing", "what": "load"}, {"step": "load"}),
        ({"event": "doing", "key": "cuda", "shape": 4}, {"step": "cuda shape 5"}),
        ({"event": "start", "processors": 8}, {"processors": 8}),
        ({"event": "gpu", "name": "A10 (8.6)"}, {"gpu": "A10 (8.6)"}),
        ({"event": "onnxruntime", "version": "1.26.0"}, {"release": "1.26.0"}),
        (
            {
                "event": "model",
                "inputs": [{"name": "x", "type": "tensor(float)", "shape": [1, "n", None, 2.5]}],
                "outputs": [{}],
                "threads": 4,
            },
            {
                "inputs": (Tensor(name="x", type="tensor(float)", shape=(1, "n", None, None)),),
                "outputs": (Tensor(name="", type="", shape=()),),
                "threads": 4,
            },
        ),
        (
            {"event": "shapes", "shapes": [{"x": [1, 2], "s": []}, {"x": [4, 2]}], "given": True},
            {"shapes": ((("x", (1, 2)), ("s", ())), (("x", (4, 2)),)), "given": True},
        ),
        ({"event": "skipped", "error": "batch 4: no"}, {"skipped": ("batch 4: no",)}),
        ({"event": "skipped"}, {"skipped": ("",)}),
        (
            {"event": "refused", "code": "load", "values": {"error": "x"}},
            {"refused": ("load", {"error": "x"})},
        ),
        (
            {"event": "session", "key": "cuda", "create_ms": 9.5, "providers": ["A", "B"]},
            {"made": {"cuda": Made(create_ms=9.5, providers=("A", "B"))}},
        ),
        ({"event": "session"}, {"made": {"": Made(create_ms=0.0, providers=())}}),
        (
            {"event": "times", "key": "cpu", "shape": 2, "kind": "warm", "ms": [1, 2.5, "x"]},
            {"times": {("cpu", 2, "warm"): [(1.0, 2.5)]}},
        ),
        ({"event": "times"}, {"times": {("", 0, ""): [()]}}),
        (
            {"event": "outputs", "key": "cuda", "shape": 1, "outputs": [OUTPUT]},
            {"compared": {("cuda", 1): (ROW,)}},
        ),
        (
            {"event": "outputs", "outputs": [{}]},
            {
                "compared": {
                    ("", 0): (OutputRow(name="", type="", shape=(), deviation=None, problem=None),)
                }
            },
        ),
        ({"event": "repeated", "outputs": [OUTPUT]}, {"repeated": (ROW,)}),
        ({"event": "memory", "key": "cuda", "bytes": 5}, {"memory": {"cuda": 5}}),
        ({"event": "memory"}, {"memory": {"": 0}}),
        ({"event": "profile", "key": "cuda", "events": [NODE]}, {"events": {"cuda": (EVENT,)}}),
        (
            {"event": "profile", "events": [{"output_size": "many"}]},
            {
                "events": {
                    "": (
                        NodeEvent(
                            name="",
                            op="",
                            provider="",
                            microseconds=0,
                            output_bytes=0,
                            types=(),
                            elements=0,
                        ),
                    )
                }
            },
        ),
        (
            {"event": "failed", "key": "cuda", "shape": 1, "error": "no"},
            {"failed": (Failed(key="cuda", shape=1, error="no"),)},
        ),
        ({"event": "failed"}, {"failed": (Failed(key="", shape=None, error=""),)}),
        ({"event": "end"}, {"ended": True}),
    ],
    ids=lambda value: value.get("event", "") if isinstance(value, dict) else "",
)
def test_what_an_event_says(event: dict[str, Any], changed: dict[str, Any]) -> None:
    assert said(event) == changed


def test_blocks_of_times_and_failures_add_up() -> None:
    block = {"event": "times", "key": "cpu", "shape": 0, "kind": "steady"}
    found = parse_measurement(
        "\n".join(json.dumps(row) for row in (block | {"ms": [1, 2]}, block | {"ms": [3]}))
    )

    assert found.all_times("cpu", 0, "steady") == [1.0, 2.0, 3.0]
    assert found.all_times("cpu", 1, "steady") == []
    failed = said({"event": "failed", "key": "a"}, {"event": "failed", "key": "b"})["failed"]
    assert [row.key for row in failed] == ["a", "b"]


def test_its_log_has_no_colours() -> None:
    assert said(log="\x1b[1;31mE: no\x1b[m\n") == {"log": "E: no\n"}


def test_shapes_are_said_as_they_are_given() -> None:
    shapes = shapes_of({"x": [1, 3, 224], "sr": []})

    assert say_shapes(shapes) == "x=1x3x224, sr="
    assert shape_flags(shapes) == "--shape x=1x3x224 --shape sr="
    assert (sizes_of([1, "n", 2]), sizes_of("12")) == ((1, 2), ())
