"""What is timed, and what the times of several rounds amount to."""

from __future__ import annotations

import json
from typing import Any

from ortgpu_fix.guests.bench.bench import Bench, Configuration, Timing, searches, summarize
from ortgpu_fix.guests.bench.measurement import CPU, Failed, Measurement, parse_measurement
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


def test_half_of_the_steady_runs_lie_between_low_and_high() -> None:
    """The quartiles, with the least and the most among the runs."""
    one, two, five = (
        summarize([measured(times("steady", *ms))], ROWS).at("cuda", 0)
        for ms in ((4.0,), (1.0, 3.0), (5.0, 1.0, 4.0, 2.0, 3.0))
    )

    assert [(row.low_ms, row.median_ms, row.high_ms) for row in (one, two, five)] == [
        (4.0, 4.0, 4.0),
        (1.5, 2.0, 2.5),
        (2.0, 3.0, 4.0),
    ]
    assert [(row.least_ms, row.runs) for row in (one, two, five)] == [(4.0, 1), (1.0, 2), (1.0, 5)]


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
    assert [(row.shape, row.first_ms, row.median_ms) for row in found.timings] == [
        (0, None, 4.0),
        (1, 70.0, 3.0),
        (2, 60.0, None),
    ]
    assert summarize([second], ROWS).shapes == found.shapes
    assert summarize([second, first], ROWS).shapes == found.shapes
    assert summarize([], ROWS).timings == ()


def test_each_configuration_has_its_own_times_and_failures() -> None:
    bench = Bench(
        onnxruntime="1.26.0",
        gpu="A10",
        processors=8,
        cpu_threads=4,
        shapes=((("x", (1, 3)), ("s", ())),),
        shapes_given=True,
        configurations=(
            Configuration(key="cpu", on_gpu=False),
            Configuration(key="cuda", on_gpu=True, options={"a": "b"}, binding=True, graph=True),
        ),
        create_ms={"cuda": 5.0},
        timings=(Timing(key="cpu", shape=0, runs=3), Timing(key="cuda", shape=0, runs=4)),
        deviations={"cuda": 0.5},
        failed=(Failed(key="cuda", shape=1, error="no"),),
        skipped=("batch 4",),
        ended_early=("cut",),
        interrupted=True,
    )
    found: Any = bench.to_json()
    cpu, cuda = found.pop("configurations")

    assert found == {
        "gpu": "A10",
        "onnxruntime": "1.26.0",
        "processors": 8,
        "cpu_threads": 4,
        "shapes": [{"x": [1, 3], "s": []}],
        "shapes_given": True,
        "deviations": {"cuda": 0.5},
        "skipped": ["batch 4"],
        "ended_early": ["cut"],
        "interrupted": True,
    }
    assert {name: cpu[name] for name in ("key", "provider", "options", "binding", "graph")} == {
        "key": "cpu",
        "provider": "cpu",
        "options": {},
        "binding": False,
        "graph": False,
    }
    assert (cpu["create_ms"], cpu["failed"]) == (None, [])
    assert [(row["shape"], row["runs"], "key" in row) for row in cpu["timings"]] == [(0, 3, False)]
    assert {name: cuda[name] for name in ("key", "provider", "options", "binding", "graph")} == {
        "key": "cuda",
        "provider": "cuda",
        "options": {"a": "b"},
        "binding": True,
        "graph": True,
    }
    assert cuda["create_ms"] == 5.0
    assert cuda["failed"] == [{"key": "cuda", "shape": 1, "error": "no"}]
    assert [row["runs"] for row in cuda["timings"]] == [4]
