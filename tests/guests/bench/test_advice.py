"""What measured times advise.

No GPU was at hand: the GPU's times are those that people published with what they measured them on,
or made up where a test says so. Those of the CPU in the recordings are real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from measured_model import REPORT, codes
from told import values_of

from ortgpu_fix.guests.bench.advice import Advice, advise, buckets, pick
from ortgpu_fix.guests.bench.bench import (
    SEARCHES,
    Bench,
    Configuration,
    Timing,
    allows_graph,
    summarize,
)
from ortgpu_fix.guests.bench.measurement import CPU, parse_measurement
from ortgpu_fix.guests.bench.model_report import Copies, Fallback, ModelReport, ProviderShare

RECORDINGS = Path(__file__).parents[2] / "recordings" / "measure"
GPU = {
    search: Configuration(
        key=f"cuda-{search.lower()}", on_gpu=True, options={"cudnn_conv_algo_search": search}
    )
    for search in SEARCHES
}


def timing(key: str, shape: int, median: float, first: float | None = None, **more: Any) -> Timing:
    """A timing of which half the runs took within 2 % of the median."""
    values: dict[str, Any] = {"low_ms": median * 0.98, "high_ms": median * 1.02, "runs": 40, **more}
    first = median if first is None else first
    return Timing(key=key, shape=shape, first_ms=first, median_ms=median, **values)


def bench(
    timings: list[Timing],
    shapes: Sequence[tuple[int, ...]],
    *,
    release: str = "1.26.0",
    **more: Any,
) -> Bench:
    keys = {row.key for row in timings}
    rows = [Configuration(key=CPU, on_gpu=False), *GPU.values()]
    known: dict[str, Any] = {
        "configurations": tuple(row for row in rows if row.key in keys),
        **more,
    }
    return Bench(
        onnxruntime=release,
        gpu="NVIDIA GeForce RTX 2080 Ti (7.5)",
        processors=12,
        cpu_threads=6,
        shapes=tuple((("x", shape),) for shape in shapes),
        shapes_given=True,
        create_ms={},
        timings=tuple(timings),
        **known,
    )


def values(advice: Advice, code: str) -> dict[str, str]:
    return next(values_of(row) for row in advice.rows if row.code == code)


def test_exhaustive_alone_is_slower_than_the_cpu_where_every_shape_is_new() -> None:
    """A report of 2022: 1.183 s an image on the CPU, 2.574 s on the GPU with EXHAUSTIVE.

    With 1.12.0, on a GTX 1660 Super. Each image has another shape. That a known shape takes 0.2 s
    is made up: nobody measured it.
    """
    shapes = [(1, 3, 640, 320 + 32 * number) for number in range(8)]
    rows = [timing(CPU, shape, 1183.0) for shape in range(8)]
    rows += [timing("cuda-exhaustive", shape, 200.0, 2574.0) for shape in range(8)]
    found = bench(rows, shapes, release="1.12.0")

    advice = advise(found, REPORT)

    assert codes(advice) == [
        "gpu-faster",
        "new-shape-costs",
        "new-shapes-slower",
        "shape-pays-after",
        "bring-to-buckets",
    ]
    assert values(advice, "new-shapes-slower") == {"new": "2.57 s", "cpu": "1.18 s"}
    # (2574 - 200) / (1183 - 200) = 2.4: the third run of a shape is the first that gains.
    assert values(advice, "shape-pays-after") == {"runs": "3"}
    assert values(advice, "bring-to-buckets") == {"buckets": "x, dimension 3: 352, 416, 480, 544"}
    assert advice.options == {}


def test_shapes_that_take_turns_from_1_20_on() -> None:
    """A search begins anew for a shape that was seen before, where another came in between.

    Measured on an L4 with onnxruntime-gpu 1.29.0, the 35 lines of one page, after a warm-up with
    the same page: the CPU 1.66 s, EXHAUSTIVE 11.26 s, HEURISTIC 11.72 s with detection, DEFAULT
    1.30 s (https://github.com/docling-project/docling/pull/4168). A line's time is a 35th of it.
    What a shape takes when it comes again and again is made up, and alike for all three.
    """
    took = {"exhaustive": 322.0, "heuristic": 325.0, "default": 37.1}
    shapes = [(1, 3, 48, width) for width in range(90, 440, 10)]

    def measured(*searches: str) -> Bench:
        rows = []
        for shape in range(len(shapes)):
            rows.append(timing(CPU, shape, 47.4))
            for search in searches:
                new = took[search]
                rows.append(timing(f"cuda-{search}", shape, 9.0, new, changed_ms=new))
        return bench(rows, shapes, release="1.29.0")

    advice = advise(measured("exhaustive", "heuristic", "default"), REPORT)
    without = advise(measured("exhaustive", "heuristic"), REPORT)

    assert advice.options == {"cudnn_conv_algo_search": "DEFAULT"}
    assert not {"new-shapes-slower", "turns-slower", "default-is-fallback"} & {*codes(advice)}
    assert values(without, "turns-slower") == {"turns": "322 ms", "cpu": "47.4 ms"}
    assert "shape-pays-after" not in codes(without)
    assert "bring-to-buckets" in codes(without)


def test_default_from_1_20_on() -> None:
    """DEFAULT is cuDNN's fallback mode there.

    Measured on an RTX 2080 Ti with onnxruntime-gpu 1.20.0 by
    https://github.com/PaddlePaddle/PaddleOCR/pull/17970: DEFAULT 284.7 ms a new shape and 206.05 ms
    a known one, HEURISTIC 93.0 ms and 4.27 ms. The CPU's 30 ms are made up.
    """
    rows = []
    for shape in range(3):
        rows += [
            timing(CPU, shape, 30.0),
            timing("cuda-heuristic", shape, 4.27, 93.0, changed_ms=4.3),
            timing("cuda-default", shape, 206.05, 284.7, changed_ms=206.0),
        ]
    shapes = [(1, 3, 48, 160), (1, 3, 48, 320), (1, 3, 48, 480)]
    new, old = (
        advise(bench(rows, shapes, release=release), REPORT) for release in ("1.20.0", "1.19.2")
    )

    assert values(new, "default-is-fallback") == {"ms": "206 ms"}
    assert "default-is-fallback" not in codes(old)
    assert new.options == old.options == {"cudnn_conv_algo_search": "HEURISTIC"}
    assert values(new, "new-shape-costs") == {
        "new": "93 ms",
        "known": "4.27 ms",
        "option": "HEURISTIC",
    }
    assert values(new, "new-shapes-slower") == {"new": "93 ms", "cpu": "30 ms"}
    assert values(new, "shape-pays-after") == {"runs": "4"}  # (93 - 4.27) / (30 - 4.27) = 3.4


@pytest.mark.parametrize(
    ("cpu", "gpu", "code"),
    [(1.0, 3.0, "stay-on-cpu"), (1.0, 1.02, "gpu-same"), (1.05, 1.0, "gpu-same")],
)
def test_where_the_gpu_gains_nothing(cpu: float, gpu: float, code: str) -> None:
    rows = [timing(CPU, 0, cpu), timing("cuda-exhaustive", 0, gpu)]

    advice = advise(bench(rows, [(1, 8)]), REPORT)

    assert (codes(advice)[0], advice.options, advice.best) == (code, None, CPU)


@pytest.mark.parametrize("failed", [0, 1])
def test_one_that_failed_for_a_shape_is_not_chosen(failed: int) -> None:
    """For want of memory, say; it had cost nothing there."""
    rows = [timing(CPU, shape, 20.0) for shape in range(2)]
    rows += [timing("cuda-default", shape, 2.0) for shape in range(2)]
    rows += [
        timing("cuda-exhaustive", 1 - failed, 1.0),
        Timing(key="cuda-exhaustive", shape=failed),
    ]

    assert pick(bench(rows, [(1, 8), (1, 16)])) == GPU["DEFAULT"]


@pytest.mark.parametrize(
    "more",
    [
        {"copies": Copies(to_host=1)},
        {"fallbacks": (Fallback(name="n", op="Shape", why="shape-work", ms=0.1),)},
        {"operators": {"Loop": 1}},
        {"copies": None},
    ],
)
def test_a_graph_needs_everything_on_the_gpu(more: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"file": "x", "verdict": "works", "copies": Copies(), **more}

    assert not allows_graph(ModelReport(**settings))


def test_fallbacks_and_float16_are_told() -> None:
    report = ModelReport(
        file="x",
        verdict="cpu-fallback",
        float16=True,
        providers=(
            ProviderShare(provider="CUDAExecutionProvider", nodes=9, ms=6.0),
            ProviderShare(provider="CPUExecutionProvider", nodes=1, ms=4.0),
        ),
        fallbacks=(Fallback(name="n", op="NonMaxSuppression", why="no-kernel", ms=4.0),),
    )
    rows = [timing(CPU, 0, 2.0), timing("cuda-exhaustive", 0, 1.0)]

    advice = advise(bench(rows, [(1, 8)]), report)

    assert values(advice, "fallback-costs") == {"part": "40%", "operators": "NonMaxSuppression"}
    assert "model-is-float16" in codes(advice)


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([90, 180, 320, 480], [192, 480]),
        ([10, 20, 30, 40, 50], [32, 56]),
        ([64, 128], []),
        (list(range(100, 500, 25)), [192, 288, 384, 480]),
    ],
)
def test_buckets(sizes: list[int], wanted: list[int]) -> None:
    shapes = [(("x", (1, 3, size)), ("n", (1,))) for size in sizes]

    found = buckets(shapes)

    assert found == ([("x, dimension 2", wanted)] if wanted else [])
    assert all(any(size <= top for top in each) for _, each in found for size in sizes)


def test_a_real_recording_of_the_cpu_alone() -> None:
    text = (RECORDINGS / "rapidocr-cls-time-1.31.1.jsonl").read_text("utf-8")
    measured = parse_measurement(text)
    cpu = Configuration(key=CPU, on_gpu=False)

    found = summarize([measured], [cpu])

    assert (found.onnxruntime, found.gpu, found.cpu_threads) == ("1.31.1", None, 2)
    assert [dict(shapes)["x"][0] for shapes in found.shapes] == [1, 4, 16]
    for row in found.timings:
        assert None not in (row.first_ms, row.changed_ms)
        assert 0 < (row.low_ms or 0) <= (row.median_ms or 0) <= (row.high_ms or 0)
        assert row.runs >= 3
    medians = [row.median_ms or 0 for row in found.timings]
    assert medians == sorted(medians)
    assert codes(advise(found, REPORT))[0] == "cpu-only"
    assert pick(found) is None


def test_the_document() -> None:
    rows = [timing(CPU, 0, 10.0), timing("cuda-exhaustive", 0, 1.0)]

    assert advise(bench(rows, [(1, 8)]), REPORT).to_json() == {
        "codes": [{"code": "gpu-faster", "values": {"least": "10.0", "most": "10.0"}}],
        "best": "cuda-exhaustive",
        "provider_options": {},
    }
    lost = [timing(CPU, 0, 1.0), timing("cuda-exhaustive", 0, 9.0)]
    assert advise(bench(lost, [(1, 8)]), REPORT).to_json()["provider_options"] is None


def test_a_shape_that_never_pays() -> None:
    """The GPU wins with the first shape alone; with those that follow it does not."""
    rows = [timing(CPU, 0, 40.0), timing("cuda-exhaustive", 0, 1.0, 90.0)]
    rows += [timing(CPU, 1, 1.0), timing("cuda-exhaustive", 1, 2.0, 90.0)]

    found = advise(bench(rows, [(1, 64), (1, 128)]), REPORT)

    assert codes(found) == ["gpu-for-shapes", "new-shape-costs", "new-shapes-slower"]


@pytest.mark.parametrize(
    ("gpu", "rows", "code"),
    [
        (None, [timing(CPU, 0, 1.0)], "cpu-only"),
        ("NVIDIA L4 (8.9)", [timing(CPU, 0, 1.0)], "nothing-compared"),
    ],
)
def test_where_nothing_is_compared_the_remarks_are_told_all_the_same(
    gpu: str | None, rows: list[Timing], code: str
) -> None:
    found = replace(bench(rows, [(1, 8)], interrupted=True), gpu=gpu)

    assert codes(advise(found, REPORT)) == [code, "interrupted"]
    other = bench([*rows, timing("cuda-exhaustive", 1, 1.0)], [(1, 8), (2, 8)], interrupted=True)
    assert codes(advise(other, REPORT)) == ["nothing-compared", "interrupted"]


def two(cpu: float, *rows: tuple[str, dict[str, Any]], since: int = 0, **more: Any) -> Bench:
    """Return what was timed with two shapes: on the CPU, and with searches of the GPU."""
    made = [timing(CPU, shape, cpu) for shape in range(2)]
    for key, each in rows:
        made += [timing(key, shape, **each) for shape in range(since, 2)]
    return bench(made, [(1, 64), (1, 128)], **more)


def test_times_of_nothing_divide_nothing() -> None:
    """A clock that does not move."""
    shapes = [(1, 64), (2, 64)]

    def answer(*pairs: tuple[float, float]) -> Advice:
        rows = []
        for shape, (cpu, gpu) in enumerate(pairs):
            rows += [timing(CPU, shape, cpu), timing("cuda-exhaustive", shape, gpu, 1.0)]
        return advise(bench(rows, shapes), REPORT)

    assert values(answer((10, 0), (10, 1)), "gpu-faster") == {"least": "10.0", "most": "10.0"}
    assert values(answer((0, 1), (1, 2)), "stay-on-cpu") == {"factor": "2.0"}


def test_a_dimension_that_some_shapes_lack_is_looked_at_in_the_others() -> None:
    shapes = [(("x", (1, 3, size)),) for size in (90, 180, 320)]

    assert buckets([*shapes, (("x", (1, 3)),)]) == [("x, dimension 2", [320])]
    assert buckets([]) == buckets(shapes[:1]) == []


def paid(heuristic: tuple[float, float], default: tuple[float, float]) -> dict[str, str] | None:
    """Return what is told of the search that is not advised: medians and first runs in ms."""
    found = two(
        400,
        ("cuda-heuristic", {"median": heuristic[0], "first": heuristic[1]}),
        ("cuda-default", {"median": default[0], "first": default[1], "changed_ms": 0.1}),
    )
    told = advise(found, REPORT)
    assert told.best == "cuda-default"
    return next((values_of(row) for row in told.rows if row.code == "search-pays-after"), None)


def test_who_has_few_shapes_is_told_which_search_is_faster_then() -> None:
    """An H100: DEFAULT was advised for its first runs; all others took 1.8 times as long."""
    assert paid((0.437, 30.8), (0.788, 14.5)) == {
        "search": "HEURISTIC",
        "runs": "48",
        "ms": "0.437 ms",
        "than": "0.788 ms",
    }


def test_the_batch_is_that_of_an_input_with_more_than_one_dimension() -> None:
    rows = []
    for shape, (cpu, gpu) in enumerate([(0.5, 1.0), (8.0, 1.0)]):
        rows += [timing(CPU, shape, cpu), timing("cuda-heuristic", shape, gpu)]
    shapes = tuple((("n", (1,)), ("x", (batch, 64))) for batch in (1, 4))

    advice = advise(replace(bench(rows, []), shapes=shapes), REPORT)

    assert values(advice, "gpu-from-batch")["batch"] == "4"
