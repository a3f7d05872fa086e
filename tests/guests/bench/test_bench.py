"""What is timed, and what the times of several rounds amount to."""

from __future__ import annotations

import json
from typing import Any

from ortgpu_fix.guests.bench.bench import Configuration, searches, summarize
from ortgpu_fix.guests.bench.measurement import CPU, Measurement, parse_measurement
from ortgpu_fix.guests.bench.model_report import ModelReport

ROWS = [Configuration(key=CPU, on_gpu=False), Configuration(key="cuda", on_gpu=True)]


def times(kind: str, *ms: float, key: str = "cuda", shape: int = 0) -> dict[str, Any]:
    return {"event": "times", "key": key, "shape": shape, "kind": kind, "ms": ms}


def measured(*events: dict[str, Any]) -> Measurement:
    return parse_measurement("\n".join(json.dumps(event) for event in events))


def test_a_model_without_convolutions_is_timed_on_both_without_options() -> None:
    report = ModelReport(file="x", verdict="works", operators={"MatMul": 3})

    assert searches(report, on_gpu=True) == tuple(ROWS)
    assert searches(report, on_gpu=False) == tuple(ROWS[:1])


def test_of_two_rounds_the_last_that_came_so_far_counts() -> None:
    """A session of the second round that ended after its first run says nothing of steady ones."""
    shapes = {"event": "shapes", "shapes": [{"x": [1, 8]}], "given": True}
    first = measured(
        {"event": "gpu", "name": "NVIDIA L4 (8.9)"},
        {"event": "start", "processors": 8},
        times("steady", 4.0),
        times("first", 90.0, shape=1),
        {"event": "session", "key": "cuda", "create_ms": 7.0},
        {"event": "failed", "key": "cuda", "shape": 2, "error": "out of memory"},
        {"event": "outputs", "key": "cuda", "shape": 0, "outputs": [{"deviation": 0.5}]},
        {"event": "outputs", "key": "cuda", "shape": 1, "outputs": [{"deviation": None}]},
        {"event": "skipped", "error": "batch 4: no"},
    )
    second = measured(
        shapes,
        times("first", 80.0),
        times("first", 70.0, shape=1),
        times("steady", 3.0, shape=1),
        times("first", 60.0, shape=2),
        {"event": "session", "key": "cuda", "create_ms": 8.0},
    )

    found = summarize([first, second], [*ROWS, *ROWS])

    assert (found.gpu, found.processors, found.configurations) == (
        "NVIDIA L4 (8.9)",
        8,
        tuple(ROWS),
    )
    assert found.shapes == ((("x", (1, 8)),),)
    assert dict(found.create_ms) == {"cuda": 8.0}
    assert [row.error for row in found.failed] == ["out of memory"]
    assert (dict(found.deviations), found.skipped) == ({"cuda": 0.5}, ("batch 4: no",))
    assert [(row.shape, row.first_ms, row.median_ms) for row in found.timings] == [
        (0, None, 4.0),
        (1, 70.0, 3.0),
        (2, 60.0, None),
    ]
    assert summarize([second], ROWS).shapes == found.shapes
    assert summarize([second, first], ROWS).shapes == found.shapes
    assert summarize([], ROWS).timings == ()
