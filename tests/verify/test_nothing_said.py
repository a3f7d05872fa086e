"""What is not said of a run is not there: no copy, no run, no float16, no end."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ortgpu_fix.verify.bench import Bench, Configuration, Timing
from ortgpu_fix.verify.measurement import Failed, Measurement
from ortgpu_fix.verify.model_report import Copies, ModelReport
from ortgpu_fix.verify.verification import Verification


def test_a_run_of_which_nothing_is_known() -> None:
    assert set(asdict(Copies()).values()) == {0}
    timing = asdict(Timing(key="cuda", shape=1))
    assert (timing.pop("key"), timing.pop("shape"), timing.pop("runs")) == ("cuda", 1, 0)
    assert not any(timing.values())
    plain = Configuration(key="cuda", on_gpu=True)
    assert (plain.options, plain.binding, plain.graph) == ({}, False, False)
    assert not any(value for name, value in asdict(Measurement()).items() if name != "step")


def test_a_report_of_a_model_that_did_not_run() -> None:
    report = asdict(ModelReport(file="m.onnx", verdict="no-driver"))
    assert {name: value for name, value in report.items() if value} == {
        "file": "m.onnx",
        "verdict": "no-driver",
    }
    found = asdict(Verification(verdict="no-gpu"))
    assert {name: value for name, value in found.items() if value} == {"verdict": "no-gpu"}


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


def test_a_bench_came_to_its_end_unless_it_was_interrupted() -> None:
    whole = Bench(
        onnxruntime=None,
        gpu=None,
        processors=None,
        cpu_threads=None,
        shapes=(),
        shapes_given=False,
        configurations=(),
        create_ms={},
        timings=(),
    )

    assert (whole.interrupted, whole.failed, whole.skipped, whole.ended_early) == (
        False,
        (),
        (),
        (),
    )
    assert whole.to_json()["interrupted"] is False
    assert whole.at("cuda", 3) == Timing(key="cuda", shape=3)
