"""What is not said of a run is not there: no copy, no run, no float16, no end."""

from __future__ import annotations

from dataclasses import asdict

from ortgpu_fix.verify.bench import Bench, Configuration, Timing
from ortgpu_fix.verify.measurement import Measurement
from ortgpu_fix.verify.model import Verification
from ortgpu_fix.verify.model_report import Copies, ModelReport


def test_a_run_of_which_nothing_is_known() -> None:
    assert set(asdict(Copies()).values()) == {0}
    timing = asdict(Timing(key="cuda", shape=1))
    assert (timing.pop("key"), timing.pop("shape"), timing.pop("runs")) == ("cuda", 1, 0)
    assert not any(timing.values())
    plain = Configuration(key="cuda", on_gpu=True)
    assert (plain.options, plain.binding, plain.graph) == ((), False, False)
    assert not any(value for name, value in asdict(Measurement()).items() if name not in {"step"})


def test_a_report_of_a_model_that_did_not_run() -> None:
    report = asdict(ModelReport(file="m.onnx", verdict="no-driver"))
    assert {name: value for name, value in report.items() if value} == {
        "file": "m.onnx",
        "verdict": "no-driver",
    }
    found = asdict(Verification(verdict="no-gpu"))
    assert {name: value for name, value in found.items() if value} == {"verdict": "no-gpu"}


def test_a_bench_came_to_its_end_unless_it_was_interrupted() -> None:
    whole = Bench(
        release=None,
        gpu=None,
        processors=None,
        threads=None,
        shapes=(),
        given=False,
        configurations=(),
        create_ms=(),
        timings=(),
    )

    assert (whole.interrupted, whole.failed, whole.skipped, whole.ends) == (False, (), (), ())
    assert whole.to_json()["interrupted"] is False
    assert whole.at("cuda", 3) == Timing(key="cuda", shape=3)
