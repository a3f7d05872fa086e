"""A model and its times in words."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from measured_model import bench, report
from pages import made

from ortgpu_fix.guests.bench.advice import Advice
from ortgpu_fix.guests.bench.bench import Timing
from ortgpu_fix.guests.bench.measurement import CPU, Failed
from ortgpu_fix.guests.bench.model_report import Checked, Copies, Fallback, ProviderShare
from ortgpu_fix.guests.bench.report import bench_sections, model_sections
from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.messages.sections import Row, Section, milliseconds, plain
from ortgpu_fix.plan.reasons import Reason


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("gpu", [True, False])
def test_the_verdict_comes_first_and_the_advice_last(language: Language, *, gpu: bool) -> None:
    page, texts = made(gpu=gpu), load_texts(language)

    model = model_sections(page.report, texts)
    times = bench_sections(page.bench, page.advice, texts)

    text = plain((*model, *times))
    assert model[0].rows[0].text == page.report.file
    assert times[-1].heading == texts.label("advice")
    first = texts.advice(page.advice.rows[0])
    assert times[-1].rows[0].text == first
    assert ("CUDAExecutionProvider" in text) is gpu
    assert ("providers=[" in text) is (page.advice.options is not None)
    assert (texts.verdict("model-cpu-alone") in text) is not gpu
    cpu = page.bench.at("cpu", 0)
    assert milliseconds(cpu.median_ms) in text


def test_many_fallbacks_are_counted_and_those_that_cost_come_first() -> None:
    texts = load_texts("en")
    rows = [
        *(Fallback(name=f"s{at}", op="Shape", why="shape-work", ms=9.0) for at in range(20)),
        Fallback(name="nms", op="NonMaxSuppression", why="no-kernel", ms=1.5),
    ]
    report = dataclasses.replace(made().report, fallbacks=tuple(rows))

    [section] = [
        each
        for each in model_sections(report, texts)
        if each.heading == texts.label("model-fallbacks")
    ]

    assert section.rows[0].head == "NonMaxSuppression"
    assert section.rows[0].text == "no CUDA kernel: nms, 1.5 ms"
    assert section.rows[-1].text == "and 9 more"


EN = load_texts("en")
GPU = "CUDAExecutionProvider"
FALLBACK = tuple((name, "1") for name in ("count", "total", "missing", "free", "operators"))


def section(sections: tuple[Section, ...], heading: str) -> list[Row]:
    return [row for each in sections if each.heading == heading for row in each.rows]


def checked(**more: Any) -> Checked:
    values: dict[str, Any] = {"name": "y", "type": "float32", "shape": 0, "deviation": 0.25}
    return Checked(**{**values, "tolerance": 0.001, "right": False, "problem": None, **more})


@pytest.mark.parametrize(
    ("right", "code"), [(True, "model-works"), (None, "model-works-unchecked")]
)
def test_of_an_output_that_was_not_compared_no_numbers_are_right(
    *, right: bool | None, code: str
) -> None:
    values = (("total", "7"), ("shape_nodes", "0"))
    found = report(values=values, checked=(checked(right=True), checked(right=right)))
    rows = section(model_sections(found, EN), EN.label("model"))

    assert rows[1].text == EN.verdict(code, values)
    broken = report(verdict="cpu-fallback", values=FALLBACK, checked=(checked(right=None),))
    rows = section(model_sections(broken, EN), EN.label("model"))
    assert rows[1].text == EN.verdict("model-cpu-fallback", FALLBACK)


def test_where_it_ran_what_was_copied_and_how_much_memory() -> None:
    copies = Copies(
        to_device=2,
        to_device_bytes=3_000,
        to_host=1,
        to_host_bytes=4_000_000,
        input_bytes=5,
        output_bytes=6_000,
    )
    shares = (ProviderShare(provider=GPU, nodes=7, ms=1.5),)
    found = report(providers=shares, copies=copies, gpu_memory_bytes=512_000_000)
    rows = section(model_sections(found, EN), EN.label("model-placement"))

    assert [(row.head, row.text) for row in rows] == [
        (GPU, "nodes: 7, 1.5 ms"),
        (
            EN.label("model-copies"),
            "2 to the GPU (3 kB), 1 back (4 MB); inputs 5 B, outputs 6 kB",
        ),
        (EN.label("model-memory"), "512 MB"),
    ]
    assert EN.label("model-placement") not in {row.heading for row in model_sections(report(), EN)}


def test_outputs_that_are_wrong_are_red() -> None:
    rows = section(
        model_sections(
            report(
                checked=(
                    checked(),
                    checked(right=True, deviation=0.0001),
                    checked(right=None),
                    checked(deviation=None, problem="nan"),
                    checked(deviation=None),
                )
            ),
            EN,
        ),
        EN.label("model-outputs"),
    )

    assert [(row.text, row.style) for row in rows] == [
        ("0.25 of the largest value (up to 0.001 is OK)", "red"),
        ("0.0001 of the largest value (up to 0.001 is OK)", ""),
        ("0.25 of the largest value (up to 0.001 is OK)", ""),
        ("cannot be compared (nan)", "red"),
        ("cannot be compared (?)", "red"),
    ]


NO_ADVICE = Advice(rows=())
CHANGED = "after another shape 4.00 ms"


def test_times_are_told_by_shape() -> None:
    timings = (
        Timing(
            key=CPU, shape=0, first_ms=9.0, median_ms=2.0, low_ms=1.5, high_ms=2.5, runs=40,
            changed_ms=4.0,
        ),
        Timing(key="cuda", shape=0, first_ms=100.0, median_ms=1.0, low_ms=1.0, high_ms=1.0, runs=3),
        Timing(key="cuda", shape=1, first_ms=1250.4),
    )  # fmt: skip
    sections = bench_sections(bench(*timings), NO_ADVICE, EN)

    assert [each.heading for each in sections] == ["Shape 1: x=1x3", "Shape 2: x=4x3"]
    assert [(row.head, row.text) for row in sections[0].rows] == [
        (
            "CPU (4 threads)",
            f"first 9.00 ms, then 2.00 ms (1.50 ms to 2.50 ms, 40 runs); {CHANGED}",
        ),
        ("cuda", "first 100 ms, then 1.00 ms (1.00 ms to 1.00 ms, 3 runs)"),
    ]
    assert [(row.head, row.text) for row in sections[1].rows] == [("cuda", "1250 ms")]
    unknown = bench(timings[0], cpu_threads=None)
    assert bench_sections(unknown, NO_ADVICE, EN)[0].rows[0].head == "CPU (? threads)"


def test_what_failed_is_cut_and_what_ended_early_is_told() -> None:
    error = "".join(f"{number:03}," for number in range(100))
    failed = (Failed(key="cuda-graph", shape=None, error=error),)
    [found] = bench_sections(bench(failed=failed, ended_early=("measure: SIGSEGV",)), NO_ADVICE, EN)

    assert found.heading == "Times"
    assert [(row.head, row.text) for row in found.rows] == [
        ("cuda-graph", f"failed: {error[:200]}"),
        ("", "Ended early: measure: SIGSEGV"),
    ]


def test_advice_ends_with_options_to_paste_where_there_are_some() -> None:
    rows = (Reason(code="gpu-same", values=()),)

    def last(**more: Any) -> tuple[int, str]:
        [found] = bench_sections(bench(), Advice(rows=rows, **more), EN)
        assert found.heading == "Advice"
        return len(found.rows), found.rows[-1].text

    assert last() == (1, EN.advice(rows[0]))
    assert last(options={}) == (2, 'providers=["CUDAExecutionProvider", "CPUExecutionProvider"]')
    count, text = last(options={"use_tf32": "0"})
    assert (count, '("CUDAExecutionProvider", {"use_tf32": "0"})' in text) == (2, True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "?"),
        (0.3384, "0.338 ms"),
        (1250.4, "1250 ms"),
    ],
)
def test_a_time_has_three_digits(value: float | None, said: str) -> None:
    assert milliseconds(value) == said
