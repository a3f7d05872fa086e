"""From where on a difference is advised: each sentence, a little below its limit and above it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from measured_model import REPORT, codes

from ortgpu_fix.guests.bench.advice import advise
from ortgpu_fix.guests.bench.bench import (
    SEARCHES,
    Bench,
    Configuration,
    Timing,
    refinements,
    searches,
    summarize,
)
from ortgpu_fix.guests.bench.measurement import CPU, Failed, NodeEvent
from ortgpu_fix.guests.bench.model_verdict import SMALL, find_fallbacks

GPU_PROVIDER, CPU_PROVIDER = "CUDAExecutionProvider", "CPUExecutionProvider"
KEYS = {search: f"cuda-{search.lower()}" for search in SEARCHES}
BEST = KEYS["HEURISTIC"]
Times = Mapping[str, tuple[float, ...]]


def bench(
    medians: Times,
    *,
    new: Times | None = None,
    changed: Times | None = None,
    spread: float = 0.02,
    **more: Any,
) -> Bench:
    """Return times by configuration and shape; `new` of the first run of each shape."""
    rows = [
        Configuration(key=CPU, on_gpu=False),
        *(
            Configuration(key=key, on_gpu=True, options={"cudnn_conv_algo_search": search})
            for search, key in KEYS.items()
            if key in medians
        ),
    ]
    timings = [
        Timing(
            key=key,
            shape=shape,
            first_ms=(new or {}).get(key, times)[shape],
            median_ms=median,
            low_ms=median * (1 - spread / 2),
            high_ms=median * (1 + spread / 2),
            changed_ms=(changed or {}).get(key, (None,) * len(times))[shape],
        )
        for key, times in medians.items()
        for shape, median in enumerate(times)
    ]
    shapes = tuple((("x", (1, 8 + at)),) for at in range(max(map(len, medians.values()))))
    made = dataclasses.replace(summarize([], rows), onnxruntime="1.26.0", gpu="A GPU (8.6)")
    return dataclasses.replace(made, shapes=shapes, timings=tuple(timings), **more)


@pytest.mark.parametrize(
    ("code", "below", "above", "made"),
    [
        ("gpu-faster", 1.09, 1.12, lambda at: bench({CPU: (at,), BEST: (1.0,)}, spread=0.001)),
        ("binding-faster", 1.09, 1.11,
         lambda at: bench({CPU: (9,), BEST: (at,), f"{BEST}-binding": (1.0,)})),
        ("tf32-faster", 1.09, 1.11,
         lambda at: bench({CPU: (9,), BEST: (1.0,), f"{BEST}-no-tf32": (at,)})),
        ("graph-faster", 1.09, 1.11,
         lambda at: bench({CPU: (9,), BEST: (at,), f"{BEST}-graph": (1.0,)})),
        # With its inputs on the GPU, too: what the graph alone brings.
        ("graph-faster", 1.09, 1.11, lambda at: bench(
            {CPU: (9,), BEST: (3.0,), f"{BEST}-binding": (at,), f"{BEST}-graph": (1.0,)})),
        ("searches-differ", 1.09, 1.11,
         lambda at: bench({CPU: (9,), BEST: (1.0,), KEYS["DEFAULT"]: (at,)})),
        ("default-is-fallback", 1.09, 1.11,
         lambda at: bench({CPU: (9,), BEST: (1.0,), KEYS["DEFAULT"]: (at,)})),
        ("searches-new-shapes", 1.09, 1.11, lambda at: bench(
            {CPU: (9, 9), BEST: (1.0, 1.0), KEYS["DEFAULT"]: (1.0, 1.0)},
            new={BEST: (2.0, 2.0), KEYS["DEFAULT"]: (2.0, 2.0 * at)})),
        ("new-shape-costs", 2.9, 3.1,
         lambda at: bench({CPU: (9, 9), BEST: (1.0, 1.0)}, new={BEST: (1.0, at)})),
        ("new-shapes-slower", 1.09, 1.11,
         lambda at: bench({CPU: (9, 9), BEST: (1.0, 1.0)}, new={BEST: (1.0, 9 * at)})),
        ("turns-slower", 1.09, 1.11, lambda at: bench(
            {CPU: (9, 9), BEST: (1.0, 1.0)}, new={BEST: (1.0, 90.0)},
            changed={BEST: (9 * at, 9 * at)})),
        ("noisy", 0.19, 0.21, lambda at: bench({CPU: (9,), BEST: (1.0,)}, spread=at)),
    ],
)  # fmt: skip
def test_a_difference_is_told_from_its_limit_on(
    code: str, below: float, above: float, made: Callable[[float], Bench]
) -> None:
    assert code not in codes(advise(made(below), REPORT))
    assert code in codes(advise(made(above), REPORT))


def test_a_graph_that_could_not_be_made_is_told_of_the_best_alone() -> None:
    times = {CPU: (9.0,), BEST: (1.0,)}
    best, another = (Failed(key=f"{key}-graph", shape=None, error="x") for key in (BEST, "cuda"))

    assert "graph-refused" in codes(advise(bench(times, failed=(best,)), REPORT))
    assert "graph-refused" not in codes(advise(bench(times, failed=(another,)), REPORT))


# What is tried.


@pytest.mark.parametrize(
    ("release", "gpu", "more", "names"),
    [
        ("1.26.0", "A (8.0)", {}, ["no-tf32", "binding", "graph"]),
        ("1.26.0", "A (7.5)", {}, ["binding", "graph"]),
        ("1.26.0", "A (8.6)", {"float16": True}, ["binding", "graph"]),
        ("1.17.3", "A (8.6)", {}, ["binding", "graph"]),
        ("1.16.3", "A (8.6)", {}, ["binding"]),
        ("1.26.0", "A (8.6)", {"copies": None}, ["no-tf32", "binding"]),
    ],
)
def test_what_a_release_and_a_gpu_have(
    release: str, gpu: str, more: dict[str, Any], names: list[str]
) -> None:
    report = dataclasses.replace(REPORT, onnxruntime=release, gpu=gpu, **more)
    best = searches(report, on_gpu=True)[2]

    rows = refinements(best, report)

    assert rows[0] == best
    assert [row.key for row in rows[1:]] == [f"{best.key}-{name}" for name in names]
    for row in rows[1:]:
        assert row.on_gpu
        tf32 = {"use_tf32": "0"} if row.key.endswith("tf32") else {}
        assert row.options == {**best.options, **tf32}
        assert row.binding is not row.key.endswith("tf32")
        assert row.graph is row.key.endswith("graph")


# What ran where.


def node(op: str = "Cast", provider: str = CPU_PROVIDER, **more: Any) -> NodeEvent:
    values: dict[str, Any] = {"microseconds": 1500, "output_bytes": 8, "types": ("float",)}
    values |= {"name": f"a {op}", "elements": 10_000, **more}
    return NodeEvent(op=op, provider=provider, **values)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (node("Shape"), "shape-work"),
        (node(types=("int64",), elements=SMALL), "shape-work"),
        (node(types=("int64",), elements=SMALL + 1), "unknown"),
        (node(types=("int64", "float"), elements=1), "unknown"),
        (node(types=(), elements=0), "unknown"),
    ],
)
def test_small_whole_numbers_are_work_on_shapes(event: NodeEvent, why: str) -> None:
    [found] = find_fallbacks([event], "")

    assert (found.name, found.op, found.ms, found.why) == (event.name, event.op, 1.5, why)
    assert find_fallbacks([dataclasses.replace(event, provider=GPU_PROVIDER)], "") == ()
