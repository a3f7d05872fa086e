"""A model and its times in words."""

from __future__ import annotations

import dataclasses

import pytest
from pages import made

from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.report.measurement import bench_sections, milliseconds, model_sections
from ortgpu_fix.report.page import render
from ortgpu_fix.verify.measurement import Failed
from ortgpu_fix.verify.model_report import Checked, Copies, Fallback


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("gpu", [True, False])
def test_the_verdict_comes_first_and_the_advice_last(language: Language, *, gpu: bool) -> None:
    page, texts = made(language, gpu=gpu), load_texts(language)
    assert page.bench
    assert page.advice

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
    report = dataclasses.replace(made("en").report, fallbacks=tuple(rows))

    [section] = [
        each
        for each in model_sections(report, texts)
        if each.heading == texts.label("model-fallbacks")
    ]

    assert section.rows[0].head == "NonMaxSuppression"
    assert section.rows[0].text == "no kernel for the GPU: nms, 1.5 ms"
    assert section.rows[-1].text == "and 9 more"


def test_outputs_copies_and_memory() -> None:
    texts = load_texts("en")
    checked = [
        Checked(
            name=name,
            type="float32",
            shape=0,
            deviation=deviation,
            tolerance=0.001,
            right=right,
            problem=problem,
        )
        for name, deviation, right, problem in [
            ("one", 0.25, False, None),
            ("two", None, False, "shape"),
            ("three", 1e-5, True, None),
        ]
    ]
    report = dataclasses.replace(
        made("en").report,
        checked=tuple(checked),
        copies=Copies(to_device=2, to_device_bytes=2_000_000, input_bytes=602_112),
        gpu_memory_bytes=512_000_000,
        evidence=("cuda: out of memory",),
    )

    text = plain(model_sections(report, texts))

    assert "one    0.25 of the largest number (up to 0.001 is right)" in text
    assert "two    cannot be compared (shape)" in text
    assert "2 to the GPU (2 MB), 0 back (0 B); inputs 602 kB, outputs 0 B" in text
    assert "512 MB" in text
    assert "cuda: out of memory" in text


def test_what_failed_and_what_ended_early() -> None:
    page, texts = made("en"), load_texts("en")
    assert page.bench
    assert page.advice
    failed = (Failed(key="cuda-graph", shape=None, error="cannot capture"),)
    bench = dataclasses.replace(page.bench, failed=failed, ended_early=("measure cuda: SIGSEGV",))

    text = plain(bench_sections(bench, page.advice, texts))

    assert "cuda-graph  failed: cannot capture" in text
    assert "Ended early: measure cuda: SIGSEGV" in text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "?"),
        (0.0689, "0.069 ms"),
        (1.234, "1.23 ms"),
        (12.34, "12.3 ms"),
        (123.4, "123 ms"),
        (2574.0, "2574 ms"),
    ],
)
def test_a_time(value: float | None, said: str) -> None:
    assert milliseconds(value) == said


@pytest.mark.parametrize("gpu", [True, False])
def test_what_there_is_at_any_moment_can_be_said(*, gpu: bool) -> None:
    texts = load_texts("en")
    codes = set()
    for cut in range(0, 400, 9):
        page = made("en", gpu=gpu, cut=cut)
        assert page.bench
        assert page.advice
        text = plain(bench_sections(page.bench, page.advice, texts))
        assert texts.advice(page.advice.rows[-1]) in text
        assert "interrupted" in text
        assert texts.label("page-made", version="1", date="d") in render(
            page._replace(made=texts.label("page-made", version="1", date="d")), texts
        )
        codes.add(page.advice.rows[0].code)
    assert "nothing-compared" in codes
    assert ("cpu-only" in codes) is not gpu
    assert any(code.startswith("gpu-") for code in codes) is gpu


def test_a_verdict_without_a_hint_and_a_note_without_one() -> None:
    texts = load_texts("en")
    report = dataclasses.replace(
        made("en").report, notes=(Reason(code="model-cpu-alone", values=()),)
    )

    assert texts.verdict("model-cpu-alone") in plain(model_sections(report, texts))
    works = dataclasses.replace(
        report, verdict="works", values=(("total", "3"), ("shape_nodes", "0"))
    )
    assert "all 3 nodes" in plain(model_sections(works, texts))
