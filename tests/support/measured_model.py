"""A model that was run and timed, as values."""

from __future__ import annotations

from typing import Any

from ortgpu_fix.guests.bench.advice import Advice
from ortgpu_fix.guests.bench.bench import Bench, Configuration, Timing
from ortgpu_fix.guests.bench.measurement import CPU
from ortgpu_fix.guests.bench.model_report import Copies, ModelReport

REPORT = ModelReport(
    file="x.onnx",
    verdict="works",
    onnxruntime="1.26.0",
    gpu="NVIDIA A10 (8.6)",
    copies=Copies(),
    operators={"Conv": 4},
)
"""One with convolutions, all of it on the GPU."""


def codes(advice: Advice) -> list[str]:
    return [row.code for row in advice.rows]


def report(**more: Any) -> ModelReport:
    """Return what is told of a model that works, changed by `more`."""
    values: dict[str, Any] = {
        "file": "m.onnx",
        "verdict": "works",
        "values": (("total", "7"), ("shape_nodes", "0")),
        "gpu": "A10 (8.6)",
    }
    return ModelReport(**{**values, **more})


def bench(*timings: Timing, **more: Any) -> Bench:
    """Return the times of a model with two shapes, on the CPU and with CUDA."""
    values: dict[str, Any] = {
        "onnxruntime": "1.26.0",
        "gpu": None,
        "processors": 8,
        "cpu_threads": 4,
        "shapes": ((("x", (1, 3)),), (("x", (4, 3)),)),
        "shapes_given": True,
        "configurations": (
            Configuration(key=CPU, on_gpu=False),
            Configuration(key="cuda", on_gpu=True),
        ),
        "create_ms": {},
    }
    return Bench(timings=timings, **{**values, **more})
