"""The page says what the JSON says, and nothing that is on it can do anything."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from pathlib import Path
from typing import Any

import measured_model
import pytest
from pages import HOSTILE, Shown, made, page

from ortgpu_fix.messages.catalog import LANGUAGES, Language, load_texts
from ortgpu_fix.messages.sections import Row
from ortgpu_fix.plan.reasons import Reason
from ortgpu_fix.report.page import Page, render
from ortgpu_fix.report.page_parts import (
    Column,
    bars,
    clean,
    document,
    element,
    escape,
    prose,
    section,
    table,
)
from ortgpu_fix.report.page_style import SCRIPT, STYLE
from ortgpu_fix.utils.files import write
from ortgpu_fix.verify.advice import Advice
from ortgpu_fix.verify.bench import Bench, Timing
from ortgpu_fix.verify.measurement import CPU, Failed, say_shapes
from ortgpu_fix.verify.model_report import Checked, Copies, Fallback, ModelReport, ProviderShare
from ortgpu_fix.verify.verification import LoadedLibrary


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


EN = load_texts("en")
GPU = "CUDAExecutionProvider"


def report(**more: Any) -> ModelReport:
    shares = (ProviderShare(provider=GPU, nodes=7, ms=1.5),)
    return measured_model.report(**{"providers": shares, **more})


def bench(*timings: Timing, **more: Any) -> Bench:
    values: dict[str, Any] = {"gpu": "A10 (8.6)", "create_ms": {CPU: 20.0}}
    return measured_model.bench(*timings, **{**values, **more})


def shown(model: ModelReport, **more: Any) -> Shown:
    return Shown(html(model, **more))


def html(model: ModelReport, **more: Any) -> str:
    values: dict[str, Any] = {
        "bench": None,
        "advice": None,
        "machine": [],
        "libraries": [],
        "findings": [],
        "versions": [],
        "made": "ortgpu-fix 9.9",
        "redact": lambda text: text.replace("secret", "…"),
    }
    return render(Page(report=model, **{**values, **more}), EN)


def headings(text: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", text)


def test_a_page_has_the_sections_that_have_something_to_say() -> None:
    assert headings(html(report(providers=()))) == ["What ortgpu-fix finds here"]
    whole = html(
        report(
            fallbacks=(Fallback(name="n", op="Add", why="unknown", ms=1.0),),
            checked=(CHECKED,),
        ),
        bench=bench(Timing(key=CPU, shape=0, first_ms=1.0, median_ms=1.0)),
        advice=Advice(rows=(Reason(code="cpu-only", values=()),)),
        machine=[Row(head="Driver", text="535"), Row(head="None", text="")],
        versions=[("numpy", "2.0")],
        libraries=[LoadedLibrary(name="l", path="/secret/l")],
    )
    assert headings(whole) == [
        "Advice",
        "Machine",
        "What ran where",
        "Nodes that ran on the CPU",
        "Difference from the CPU",
        "Times",
        "What ortgpu-fix finds here",
        "Versions",
        "Libraries loaded",
    ]
    assert "<h1>m.onnx on this machine</h1>" in whole
    assert "<dl><dt>Driver</dt><dd>535</dd></dl>" in whole
    assert whole.count('<p class="dim">ortgpu-fix 9.9</p>') == 1


CHECKED = Checked(
    name="secret", type="float32", shape=1, deviation=0.0625, tolerance=1e-3, right=False,
    problem=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "colour"),
    [
        ("works", "verdict good"),
        ("no-driver", "verdict"),
        ("wrong-result", "verdict bad"),
        ("crashed", "verdict bad"),
    ],
)
def test_a_verdict_has_its_colour(verdict: Any, colour: str) -> None:
    named = {"works": ("total", "shape_nodes"), "wrong-result": ("outputs",)}
    named["crashed"] = ("step", "end")
    values = tuple((name, "7") for name in named.get(verdict, ()))
    found = shown(report(verdict=verdict, values=values))
    [row] = [row for tag, row in found.tags if "data-verdict" in row]

    assert (row["class"], found.verdict) == (colour, verdict)


def test_that_the_cpu_alone_was_used_is_said_where_something_ran() -> None:
    alone = EN.verdict("model-cpu-alone")

    assert alone in shown(report(gpu=None)).text
    assert alone not in shown(report(gpu=None, providers=())).text
    assert alone not in shown(report()).text


def test_evidence_and_hints_are_dim_and_redacted() -> None:
    codes = ("model-memory", "model-cpu-alone")  # the second one needs no hint
    notes = tuple(Reason(code=code, values=()) for code in codes)
    text = html(report(evidence=("cuda: secret",), notes=notes))

    memory, alone = (prose(EN.verdict(code)) for code in codes)
    hint = prose(EN.verdict("model-memory", (), "hint"))
    assert not EN.verdict("model-cpu-alone", (), "hint")
    assert (
        f'<p>{memory}</p>\n<p class="dim">{hint}</p>\n<p>{alone}</p>\n<p class="dim">cuda: …</p>\n'
    ) in text


def test_what_ran_where_has_numbers_to_sort_by() -> None:
    found = shown(report(copies=Copies(), gpu_memory_bytes=5_000_000))

    assert found.tables["What ran where"] == [[(GPU, None), ("7", "7"), ("1.500", "1.5")]]
    assert "nodes: 7, 1.5 ms" in found.text
    assert "5 MB" in found.text


def test_fallbacks_and_outputs_cell_by_cell() -> None:
    odd = Checked(**{**asdict(CHECKED), "deviation": None, "problem": "nan", "shape": 0})
    none = Checked(**{**asdict(CHECKED), "deviation": None})
    found = shown(
        report(
            fallbacks=(Fallback(name="secret", op="Add", why="no-kernel", ms=2.0),),
            checked=(CHECKED, odd, none),
        )
    )

    assert found.tables["Nodes that ran on the CPU"] == [
        [("…", None), ("Add", None), ("no kernel for the GPU", None), ("2.000", "2.0")]
    ]
    assert found.tables["Difference from the CPU"] == [
        [("…", None), ("2", "1"), ("0.062", "0.0625"), ("0.001", "0.001")],
        [("…", None), ("1", "0"), ("nan", None), ("0.001", "0.001")],
        [("…", None), ("2", "1"), ("?", None), ("0.001", "0.001")],
    ]


def asdict(row: Checked) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Checked.__slots__}


def test_times_cell_by_cell() -> None:
    timed = Timing(
        key=CPU,
        shape=0,
        first_ms=9.0,
        warm_ms=(3.0, 2.5),
        median_ms=2.0,
        low_ms=1.9,
        high_ms=2.1,
        runs=40,
        changed_ms=4.0,
    )
    bare = Timing(key="cuda", shape=0, first_ms=1.0)
    late = Timing(key="cuda", shape=1, median_ms=0.5)
    found = shown(report(), bench=bench(timed, bare, late))

    assert found.tables["Shape 1: x=1x3"] == [
        [
            ("CPU (4 threads)", None),
            ("9.000", "9.0"),
            ("3.000, 2.500", None),
            ("2.000", "2.0"),
            ("1.900 – 2.100", None),
            ("40", "40"),
            ("4.000", "4.0"),
            ("20.000", "20.0"),
        ],
        [
            ("cuda", None),
            ("1.000", "1.0"),
            ("–", None),
            ("–", None),
            ("–", None),
            ("0", "0"),
            ("–", None),
            ("–", None),
        ],
    ]
    assert "Shape 2: x=4x3" not in found.tables
    assert "0.500 ms" in found.text  # it has a bar all the same


def test_columns_of_numbers_are_marked_and_those_of_nodes_and_times_can_be_sorted() -> None:
    share = Fallback(name="n", op="Add", why="no-kernel", ms=2.0)
    timings = [Timing(key=key, shape=0, first_ms=1.0, median_ms=1.0) for key in (CPU, "cuda")]
    text = html(
        report(fallbacks=(share,), checked=(CHECKED,)),
        bench=bench(*timings),
        libraries=[LoadedLibrary(name="l", path="/l")],
    )

    columns = {
        part.partition("</caption>")[0]: re.findall(r'<th scope="col"([^>]*)>([^<]*)</th>', part)
        for part in text.split("<caption>")[1:]
    }
    numbers = {
        caption: [title for said, title in heads if 'class="number"' in said]
        for caption, heads in columns.items()
    }
    assert numbers == {
        "What ran where": ["Nodes", "Time (ms)"],
        "Nodes that ran on the CPU": ["Time (ms)"],
        "Difference from the CPU": ["Deviation", "Tolerance"],
        "Shape 1: x=1x3": [title for _, title in columns["Shape 1: x=1x3"]][1:],
        "Libraries loaded": [],
    }
    assert len(numbers["Shape 1: x=1x3"]) == 7
    sortable = {name: ["data-sort" in said for said, _ in heads] for name, heads in columns.items()}
    assert {name for name, found in sortable.items() if all(found)} == {
        *("Nodes that ran on the CPU", "Shape 1: x=1x3"),
    }
    charts = re.findall(r'<div class="bars" role="list" aria-label="([^"]*)">', text)
    assert charts == ["What ran where", "Shape 1: x=1x3"]
    assert re.findall("<h3>([^<]*)</h3>", text) == ["Shape 1: x=1x3", "Shape 2: x=4x3"]


def test_what_failed_is_cut_and_redacted() -> None:
    error = "secret " + "".join(f"{number:03}," for number in range(200))
    failed = (Failed(key="cuda-graph", shape=None, error=error),)
    found = shown(report(), bench=bench(failed=failed, ended_early=("measure: SIGSEGV",)))

    assert f"cuda-graph: failed: {error[:300]}".replace("secret", "…") in found.text
    assert error[:301].replace("secret", "…") not in found.text
    assert "Ended early: measure: SIGSEGV" in found.text


def test_options_stand_there_to_be_pasted_where_some_are_advised() -> None:
    rows = (Reason(code="gpu-same", values=()),)
    text = html(report(), advice=Advice(rows=rows, options={"use_tf32": "0"}))

    assert f'<p class="dim">{EN.label("page-paste")}</p><pre><code>' in text
    assert "use_tf32" in text
    unasked = html(report(), advice=Advice(rows=rows))
    assert "<pre>" not in unasked
    assert EN.label("page-paste") not in unasked


def test_findings_stand_with_what_mends_them() -> None:
    text = html(report(), findings=[("secret is wrong", "`mend`"), ("odd", "")])

    assert "<ul><li>… is wrong – <code>mend</code></li><li>odd</li></ul>" in text


def test_libraries_without_a_version_are_listed_too() -> None:
    rows = [
        LoadedLibrary(name="a", path="/secret/a", version="9.1"),
        LoadedLibrary(name="b", path="/b"),
    ]

    assert shown(report(), libraries=rows).tables["Libraries loaded"] == [
        [("a", None), ("9.1", None), ("/…/a", None)],
        [("b", None), ("–", None), ("/b", None)],
    ]


def test_an_element_to_the_letter() -> None:
    assert element("p", "a<b", class_="x", data_value='"1"', title=None) == (
        '<p class="x" data-value="&quot;1&quot;">a&lt;b</p>'
    )
    assert escape(escape("a&b")) == "a&amp;b"
    assert prose("`a` and `b`") == "<code>a</code> and <code>b</code>"


def test_a_section_without_anything_is_none() -> None:
    assert section("Head", "", "") == ""
    assert section("Head", "", "a") == "<section><h2>Head</h2>a</section>"


def test_a_table_to_the_letter() -> None:
    columns = [Column("Name"), Column("ms", number=True)]
    made = table("Times", columns, [[("a", None), ("1.0", 1.0)]], sort="by {column}")

    assert made == (
        '<div class="scroll" role="region" aria-label="Times" tabindex="0"><table>'
        "<caption>Times</caption><thead><tr>"
        '<th scope="col" data-sort="by Name">Name</th>'
        '<th scope="col" class="number" data-sort="by ms">ms</th></tr></thead>'
        '<tbody><tr><td>a</td><td class="number" data-value="1.0">1.0</td></tr></tbody>'
        "</table></div>"
    )
    assert "data-sort" not in table("Times", columns, [[("a", None), ("1.0", 1.0)]])
    assert table("Times", columns, []) == ""
    with pytest.raises(ValueError, match="zip"):
        table("Times", columns, [[("a", None)]])


def test_a_page_runs_its_own_style_and_script_alone() -> None:
    text = document("en", "a<b", "one", "", "two & three")

    for part in (STYLE, SCRIPT):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in text
    assert "<title>a&lt;b</title>" in text
    assert "<main>\none\ntwo &amp; three\n</main>" in text


def test_a_path_that_is_no_text_spoils_no_page(tmp_path: Path) -> None:
    """In a folder of such a name all was measured, and then there was no page."""
    text = document("en", "a\udcffb", "/home/\udcfe/env")

    write(tmp_path / "page.html", text)
    assert "<title>a?b</title>" in text
    assert "/home/?/env" in (tmp_path / "page.html").read_text("utf-8")


def test_in_print_tables_repeat_their_head_and_no_chart_is_split() -> None:
    """Browsers repeat a `thead` that is a header group, and keep together what they are told to."""
    [rules] = re.findall(r"@media print \{\n(.*?)\n\}", STYLE, re.DOTALL)

    assert "thead { display: table-header-group; }" in rules
    assert re.search(r"\.bars[^{]*\{ break-inside: avoid; \}", rules)
