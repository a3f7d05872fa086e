"""The page says what the JSON says, and nothing that is on it can do anything."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from pages import HOSTILE, Shown, made, page

from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.report.page import render
from ortgpu_fix.report.page_parts import Column, bars, clean, element, prose, table
from ortgpu_fix.verify.measurement import CPU, Failed, say_shapes
from ortgpu_fix.verify.model_report import Fallback


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("gpu", [True, False])
def test_the_numbers_of_the_page_are_those_of_the_json(language: Language, *, gpu: bool) -> None:
    about = made(language, gpu=gpu)
    shown = Shown(render(about, load_texts(language)))
    assert about.bench is not None
    assert about.advice is not None
    bench: Any = about.bench.to_json()
    report: Any = about.report.to_json()

    compared = 0
    for number, shapes in enumerate(about.bench.shapes):
        [rows] = [
            rows for title, rows in shown.tables.items() if title.endswith(say_shapes(shapes))
        ]
        timed = [
            (each, timing)
            for each in bench["configurations"]
            for timing in each["timings"]
            if timing["shape"] == number
        ]
        assert len(rows) == len(timed) == (4 if gpu else 1)
        for (called, first, warm, median, spread, runs, changed, create), (each, timing) in zip(
            rows, timed, strict=True
        ):
            assert called[0] == each["key"] or each["key"] == CPU
            numbers = ("first_ms", first), ("median_ms", median), ("changed_ms", changed)
            for name, (text, value) in numbers:
                assert float(value or "nan") == timing[name]
                assert text == f"{timing[name]:.3f}"
                compared += 1
            assert float(create[1] or "nan") == each["create_ms"]
            assert (runs[0], runs[1]) == (str(timing["runs"]), str(timing["runs"]))
            assert spread[0] == f"{timing['low_ms']:.3f} – {timing['high_ms']:.3f}"
            assert warm[0] == ", ".join(f"{ms:.3f}" for ms in timing["warm_ms"])
    assert compared >= 9
    assert shown.verdict == report["verdict"]
    assert shown.codes == [row.code for row in about.advice.rows]
    texts = load_texts(language)
    places = shown.tables[texts.label("model-placement")]
    assert [(one[0], int(two[1] or -1), float(three[1] or -1)) for one, two, three in places] == [
        (row["provider"], row["nodes"], row["ms"]) for row in report["providers"]
    ]
    nodes = shown.tables.get(texts.label("model-fallbacks"), [])
    assert sorted(row[0][0] for row in nodes) == sorted(row["name"] for row in report["fallbacks"])
    assert bool(nodes) is gpu


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_a_name_is_it_is_text(language: Language) -> None:
    shown = Shown(page(language, name=HOSTILE))

    names = [tag for tag, _ in shown.tags]
    assert (names.count("script"), names.count("b")) == (1, 0)
    assert "</td><script>alert(1)</script><b>&amp;\"'gnp.exe" in shown.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", shown.text)
    for _, attributes in shown.tags:
        assert not any(name.startswith("on") for name in attributes)


def test_no_home_is_shown() -> None:
    text = page("en")

    assert "alice" not in text
    assert "~/m.onnx" in text
    assert "~/.venv/libcudnn.so.9" in text


def test_a_page_loads_nothing() -> None:
    shown = Shown(page("en"))

    for tag, attributes in shown.tags:
        for name in ("src", "href", "action", "srcset", "data"):
            assert attributes.get(name) in {None, "data:,"}, tag
    policy = next(row["content"] or "" for tag, row in shown.tags if "http-equiv" in row)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "url(" not in page("en")
    assert "@import" not in page("en")


def test_the_language_is_told() -> None:
    assert '<html lang="en">' in page("en")
    assert '<html lang="zh-CN">' in page("zh")
    assert "建议" in Shown(page("zh")).text


def test_prose() -> None:
    assert prose("a `b<c` d") == "a <code>b&lt;c</code> d"
    assert prose("one ` alone") == "one ` alone"
    assert element("p", prose("`x`")) == "<p><code>x</code></p>"
    assert clean("a\x00b\nc\u2066d") == "ab cd"


def test_a_model_alone_has_neither_times_nor_advice() -> None:
    texts = load_texts("en")
    about = made("en")._replace(bench=None, advice=None, findings=[])
    report = dataclasses.replace(about.report, gpu_memory_bytes=512_000_000, copies=None)

    shown = Shown(render(about._replace(report=report), texts))

    assert shown.codes == []
    assert "512 MB" in shown.text
    assert texts.label("page-no-findings") in shown.text
    assert texts.label("advice") not in shown.text


def test_what_went_wrong_is_on_the_page() -> None:
    about = made("en")
    assert about.bench
    failed = (Failed(key="cuda-graph", shape=None, error="/home/alice/x cannot"),)
    bench = dataclasses.replace(about.bench, failed=failed, ended_early=("measure cuda: SIGSEGV",))
    report = dataclasses.replace(
        about.report, evidence=("cuda: gone",), notes=(Reason(code="model-cpu-alone", values=()),)
    )

    shown = Shown(render(about._replace(bench=bench, report=report), load_texts("en")))

    assert "cuda-graph: failed: ~/x cannot" in shown.text
    assert "Ended early: measure cuda: SIGSEGV" in shown.text
    assert "cuda: gone" in shown.text


def test_a_page_without_machine_and_libraries() -> None:
    about = made("en")._replace(machine=[], libraries=[], versions=[])

    assert "Libraries loaded" not in Shown(render(about, load_texts("en"))).text


def test_where_only_the_cpu_was_timed_the_chart_compares_the_shapes() -> None:
    about = made("en", gpu=False)
    assert about.bench
    shown = render(about, load_texts("en"))

    charts = re.findall(r'<div class="bars" role="list" aria-label="([^"]*)">', shown)
    names = re.findall(r'<span class="name">([^<]*)</span>', shown)

    assert charts == ["What ran where", "Times"]
    assert names[1:] == [say_shapes(shapes) for shapes in about.bench.shapes]


def test_nodes_that_cost_something_on_the_cpu_come_first() -> None:
    """Work on shapes belongs there: who looks for what to mend need not pass it."""
    shown = made("en")
    nodes = (
        Fallback(name="free", op="Shape", why="shape-work", ms=9.0),
        Fallback(name="costs", op="NonMaxSuppression", why="no-kernel", ms=1.5),
        Fallback(name="folded", op="Add", why="optimizer", ms=0.1),
    )
    about = shown._replace(report=dataclasses.replace(shown.report, fallbacks=nodes))

    told = Shown(render(about, load_texts("en"))).tables[load_texts("en").label("model-fallbacks")]

    assert [row[0][0] for row in told] == ["costs", "free", "folded"]


def test_a_bar_is_as_long_as_it_is_beside_the_longest() -> None:
    """One that is next to nothing is still to be seen."""
    drawn = bars("times", [("a", 4.0, "4 ms"), ("b", 1.0, "1 ms"), ("c", 0.0, "0 ms")])

    assert re.findall(r'<rect width="([^"]+)"', drawn) == ["100.00%", "25.00%", "0.50%"]
    assert re.findall(r'<rect width="([^"]+)"', bars("times", [("a", 0.0, "")])) == ["0.50%"]
    assert bars("times", []) == ""


def test_numbers_stand_below_each_other() -> None:
    made_of = table("t", [Column("name"), Column("ms", number=True)], [[("a", None), ("2", 2.0)]])

    assert '<td class="number" data-value="2.0">2</td>' in made_of
    assert "<td>a</td>" in made_of
