"""Every key of a plan's document, and the colours and marks of what is told of it."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row, Section
from ortgpu_fix.plan.model import Plan, Unlock
from ortgpu_fix.plan.reasons import Named, reason
from ortgpu_fix.report.plan import plan_sections
from ortgpu_fix.report.plan_document import plan_json
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

EN = load_texts("en")
WHOLE = (
    "onnxruntime-gpu 1.26.0",
    "nvidia-cublas-cu12 12.8.4",
    "nvidia-cudnn-cu12 9.28.0",
    "numpy 2.2.6",
    "flatbuffers 25.0",
)


def made(
    *packages: Any, options: PlanOptions | None = None, python: Any = None, **machine: Any
) -> tuple[Plan, tuple[Section, ...]]:
    """Return a plan, and what is told of it."""
    more = {name: machine.pop(name) for name in ("verbose", "asked", "at_hand") if name in machine}
    document = synthetic.document(*packages, **machine)
    document["python"] |= python or {}
    facts = facts_json.from_json(document)
    plan = resolve(facts, options or PlanOptions(), synthetic.matrix())
    said: dict[str, Any] = {"verbose": False, "asked": False, "command": "ortgpu-fix --apply"}
    return plan, plan_sections(plan, facts, EN, **said | more)


def document(*packages: Any, **machine: Any) -> dict[str, Any]:
    return plan_json(made(*packages, **machine)[0], EN)


def section(sections: tuple[Section, ...], heading: str) -> tuple[Row, ...]:
    return next((each.rows for each in sections if each.heading == heading), ())


def test_the_document_of_a_plan_tells_each_wheel() -> None:
    torch = {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    found = document("onnxruntime 1.22.1", "numpy 2.2.6", torch)

    assert (found["schema"], found["verdict"]) == (1, "fixable")
    assert found["selection"] == {
        "cuda": "12",
        "packages": [
            {"name": "nvidia-cublas-cu12", "version": "12.8.4", "index": "pypi"},
            {"name": "nvidia-cudnn-cu12", "version": "9.1.0", "index": "pypi"},
            {"name": "onnxruntime-gpu", "version": "1.26.0", "index": "pypi"},
            {"name": "torch", "version": "2.5", "index": "pypi"},
        ],
    }
    assert found["uninstall"] == ["onnxruntime"]
    assert found["install"][2] == {
        "name": "onnxruntime-gpu",
        "version": "1.26.0",
        "index": "pypi",
        "file": "onnxruntime_gpu-1.26.0-cp311-cp311-linux_x86_64.whl",
        "sha256": "0" * 64,
        "size": 300_000_000,
    }
    assert [row["name"] for row in found["install"]] == [
        *("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "onnxruntime-gpu"),
    ]
    assert found["companions"] == [
        {"name": row.name, "version": row.version}
        for row in made("onnxruntime 1.22.1", "numpy 2.2.6", torch)[0].companions
    ]
    assert found["requires"] == ["flatbuffers"]
    rejected = found["rejected"][0]
    assert (rejected["package"], rejected["version"]) == ("onnxruntime-gpu", "1.31.0")
    assert [row["code"] for row in rejected["reasons"]] == ["driver-too-old", "torch-other-cuda"]
    assert rejected["reasons"][0]["text"] == (
        "it is built for CUDA 13, which needs driver 580.65.06 or newer; "
        "this driver supports up to CUDA 12.2"
    )


def test_the_document_of_a_plan_tells_each_finding() -> None:
    folder = {"distribution": "onnxruntime", "version": "1.22.1"}
    found = document("onnxruntime 1.22.1", *WHOLE[3:], onnxruntime=folder)["findings"]

    assert found[0] == {
        "code": "cpu-build-installed",
        "severity": "error",
        "summary": "onnxruntime 1.22.1 is the CPU build: it overwrites files of the GPU build",
        "evidence": ["onnxruntime/: onnxruntime 1.22.1"],
        "remedy": found[0]["remedy"],
    }
    assert all(row["remedy"] for row in found)


def test_the_document_of_a_plan_tells_who_else_uses_cuda() -> None:
    [row] = document(*WHOLE, "transformer 4.2")["consumers"]

    assert {name: row[name] for name in ("name", "version", "cuda", "needs")} == {
        "name": "transformer",
        "version": "4.2",
        "cuda": "12",
        "needs": ["libcublas.so.12", "libcudnn.so.9"],
    }
    assert row["why"]


def test_what_is_not_known_of_a_wheel_is_null_or_not_there() -> None:
    plan, _ = made("numpy 2.2.6")
    wheel = plan.install[0]._replace(file="", size=0, sha256="")
    rows = plan_json(plan._replace(install=(wheel,)), EN)["install"]

    assert rows == [
        {"name": wheel.name, "version": "12.8.4", "index": "pypi", "sha256": None, "size": None}
    ]


def test_rows_of_the_matrix_that_are_not_the_shipped_ones_are_named() -> None:
    rows = AddedRows("2026-11-22", "https://mirror.example", ("numpy 9.0", "numpy 9.1"))
    plan = made("numpy 2.2.6")[0]._replace(matrix_added=(rows,))

    assert plan_json(plan, EN)["matrix"] == {
        "date": "2026-01-01",
        "digest": "sha256:invented",
        "added": [
            {
                "read": "2026-11-22",
                "index": "https://mirror.example",
                "releases": ["numpy 9.0", "numpy 9.1"],
            }
        ],
    }


def test_what_goes_is_red_and_what_comes_is_green() -> None:
    _, sections = made("onnxruntime 1.22.1", "numpy 2.2.6")
    rows = section(sections, "Plan")

    assert [(row.head, row.style) for row in rows] == [
        ("- onnxruntime", "red"),
        ("+ onnxruntime-gpu", "green"),
        ("+ 2 nvidia wheels", "green"),
        ("+ ortgpu-fix-libraries", "green"),
        ("+ onnxruntime", "green"),
        ("+ flatbuffers", "green"),
        ("", ""),
    ]


@pytest.mark.parametrize(
    ("packages", "heads"),
    [
        (WHOLE[:1], ["+ 2 nvidia wheels"]),
        (WHOLE[:2], ["+ nvidia-cudnn-cu12"]),  # one alone is named
        (("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.0.1"), None),
    ],
)
def test_wheels_that_come_anew_are_told_together(
    packages: tuple[str, ...], heads: list[str] | None
) -> None:
    _, sections = made(*packages, *WHOLE[3:])
    rows = [row for row in section(sections, "Plan") if "nvidia" in row.head]

    if heads is None:
        assert [(row.head, row.text) for row in rows] == [
            ("+ nvidia-cublas-cu12", "12.0.1 → 12.8.4, 100 MB"),
            ("+ nvidia-cudnn-cu12", "9.28.0, 100 MB"),
        ]
        kept = section(sections, "Found")[-1]
        assert kept.text == EN.label("kept", listed="onnxruntime-gpu 1.26.0")
    else:
        assert [row.head for row in rows] == heads


def test_a_release_that_is_installed_anew_has_one_version() -> None:
    _, sections = made("onnxruntime 1.22.1", *WHOLE)
    rows = [(row.head, row.text) for row in section(sections, "Plan")]

    assert ("+ onnxruntime-gpu", "1.26.0, 300 MB") in rows


def test_a_wheel_of_unknown_size_names_its_index_and_counts_for_no_total() -> None:
    plan, _ = made("numpy 2.2.6", "flatbuffers 25.0")
    facts = synthetic.facts("numpy 2.2.6", "flatbuffers 25.0")
    torch = plan.install[0]._replace(
        name="torch", version="2.10.0+cu128", index_url="https://t.example/whl/cu128", size=0
    )
    with_torch = plan._replace(install=(*plan.install, torch))
    said = {"verbose": False, "asked": False, "command": ""}
    rows = section(plan_sections(with_torch, facts, EN, **said), "Plan")  # type: ignore[arg-type]

    assert ("+ torch", "2.10.0+cu128, from https://t.example/whl/cu128") in [
        (row.head, row.text) for row in rows
    ]
    assert rows[-1].text == "500 MB to download; what comes from other indexes is not counted"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "500 MB to download"),
        (1, "400 MB to download; another 100 MB are on this machine"),
        (3, "Nothing to download: all of it is on this machine"),
    ],
)
def test_what_is_at_hand_is_not_counted_as_a_download(count: int, text: str) -> None:
    files = [wheel.file for wheel in made("numpy 2.2.6", "flatbuffers 25.0")[0].install]
    _, sections = made("numpy 2.2.6", "flatbuffers 25.0", at_hand=files[:count])

    assert section(sections, "Plan")[-1].text == text


def test_marks_and_colours_follow_the_severity() -> None:
    packages = ("onnxruntime-gpu 1.23.0", *WHOLE[1:])
    _, sections = made(*packages, python={"autoload": False})
    rows = [row for row in section(sections, "Found") if row.head]

    assert {(row.head, row.style) for row in rows} == {
        *(("✗", "red"), ("!", "yellow"), ("·", "dim"), ("✓", "green")),
    }
    _, sections = made("onnxruntime 1.22.1")
    assert {(row.head, row.style) for row in section(sections, "Found")} == {("✗", "red")}


def test_what_only_the_user_can_do_stands_below_what_is_wrong() -> None:
    _, sections = made(*WHOLE, error="cuinit-804: cuInit answers 804")
    rows = section(sections, "Found")
    at = next(number for number, row in enumerate(rows) if row.head == "✗")

    assert (rows[at + 1].head, rows[at + 1].style) == ("", "dim")
    assert rows[at + 1].text


@pytest.mark.parametrize(
    ("machine", "marks"),
    [
        ({}, [" ", "✓", "✓", " "]),
        ({"driver": None, "gpus": ()}, [" ", "✗", " ", " "]),
        ({"driver": "10.0"}, [" ", " ", " ", " "]),
        ({"error": "cuinit-804: cuInit answers 804"}, [" ", "✗", "✓", " "]),
    ],
)
def test_driver_and_gpus_are_marked_right_where_something_works(
    machine: dict[str, Any], marks: list[str]
) -> None:
    _, sections = made(*WHOLE, **machine)

    assert [row.head[:2] for row in sections[0].rows] == [f"{mark} " for mark in marks]


@pytest.mark.parametrize(
    ("packages", "machine", "rows"),
    [
        (
            WHOLE,
            {},
            [("Healthy: everything that onnxruntime-gpu 1.26.0 needs is here", "bold green")],
        ),
        (
            (),
            {"driver": None, "gpus": ()},
            [("No onnxruntime-gpu on PyPI works on this machine", "bold red")],
        ),
        (
            WHOLE,
            {"python": {"autoload": True}},
            [
                ("One problem keeps onnxruntime from the GPU here. This mends it:", "bold"),
                ("ortgpu-fix --apply", "bold"),
            ],
        ),
        (  # beside it a warning and a hint, which keep nothing from the GPU
            ("onnxruntime-gpu 1.23.0", *WHOLE[1:]),
            {"python": {"autoload": False}},
            [
                ("One problem keeps onnxruntime from the GPU here. This mends it:", "bold"),
                ("ortgpu-fix --apply", "bold"),
            ],
        ),
        (
            ("onnxruntime-gpu 1.23.0", *WHOLE[1:]),
            {"options": PlanOptions(latest=True), "asked": True},
            [
                ("Nothing is broken here. This makes the change:", "bold"),
                ("ortgpu-fix --apply", "bold"),
            ],
        ),
        (
            (),
            {"driver": "10.0", "error": "cuinit-804: cuInit answers 804"},
            [("No onnxruntime-gpu on PyPI works on this machine", "bold red")],
        ),
    ],
)
def test_the_last_word_is_the_verdict(
    packages: tuple[str, ...], machine: dict[str, Any], rows: list[tuple[str, str]]
) -> None:
    _, sections = made(*packages, **machine)

    assert [(row.text, row.style) for row in sections[-1].rows] == rows
    assert [row.whole for row in sections[-1].rows] == [False, True][: len(rows)]


@pytest.mark.parametrize(
    ("machine", "label"),
    [
        ({}, "outside-tensorrt"),
        ({"error": "cuinit-804: cuInit answers 804"}, "outside"),
        ({"python": {"shadow": "/work/onnxruntime.py"}}, "shadowed"),
    ],
)
def test_a_tensorrt_that_costs_cuda_is_no_green_end(machine: dict[str, Any], label: str) -> None:
    packages = ("onnxruntime-gpu 1.23.0", *WHOLE[1:], "tensorrt 11.4.0.106")

    plan, sections = made(*packages, options=PlanOptions(onnxruntime="==1.23.0"), **machine)

    assert "tensorrt-costs-cuda" in {row.code for row in plan.outside}
    assert [row.text for row in sections[-1].rows] == [EN.label(label, version="1.23.0")]


def test_where_something_else_keeps_programs_away_it_is_no_green_end() -> None:
    shadow = {"shadow": "/work/onnxruntime.py"}
    _, healthy = made(*WHOLE, python=shadow)
    _, fixable = made(*WHOLE[:4], python=shadow)
    _, unreadable = made(*WHOLE, error="cuinit-804: cuInit answers 804")

    assert healthy[-1].rows == (Row(text=EN.label("shadowed", version="1.26.0"), style="bold red"),)
    assert [row.style for row in fixable[-1].rows] == ["bold", "bold"]
    assert unreadable[-1].rows == (
        Row(text=EN.label("outside", version="1.26.0"), style="bold red"),
    )


def test_a_wish_that_nothing_meets_is_told_as_one() -> None:
    wish = PlanOptions(onnxruntime="==1.31.0")
    _, asked = made(options=wish, asked=True)
    _, unasked = made(options=wish)

    assert asked[-1].rows[0].text != unasked[-1].rows[0].text


def test_who_else_uses_cuda_is_told_dimly_and_torch_alone_is_not() -> None:
    _, sections = made(*WHOLE, "transformer 4.2", "dataloader 1.0")
    [rows] = [each.rows for each in sections if each.heading == EN.label("consumers")]

    assert [row.head for row in rows] == ["dataloader 1.0", "transformer 4.2"]
    assert rows[1].text.startswith("CUDA 12, ")
    assert not rows[0].text.startswith("CUDA")
    assert {row.style for row in rows} == {"dim"}
    torch = {"name": "torch", "version": "2.5", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    plan, sections = made("numpy 2.2.6", torch)
    assert [row.name for row in plan.consumers] == ["torch"]
    assert not section(sections, EN.label("consumers"))


def test_changes_that_allow_the_same_share_a_line() -> None:
    plan, _ = made(driver="12.2")
    both = ("newer-driver", {"floor": "580.1"}), ("drop-wish", {"wish": "--ort"})
    rows = [
        Unlock(change=reason(code, **more), gains=(Named("onnxruntime-gpu", "2.0"),))
        for code, more in both
    ]
    rows.insert(
        1,
        Unlock(change=reason("drop-wish", wish="--cuda"), gains=(Named("onnxruntime-gpu", "1.9"),)),
    )
    said = {"verbose": False, "asked": False, "command": ""}
    sections = plan_sections(
        plan._replace(unlock=tuple(rows)),
        synthetic.facts(),
        EN,
        **said,  # type: ignore[arg-type]
    )

    assert [(row.head, row.text) for row in section(sections, "To use a newer release")] == [
        ("onnxruntime-gpu 2.0", "driver >= 580.1; or without --ort"),
        ("onnxruntime-gpu 1.9", "without --cuda"),
    ]


def test_why_this_set_is_told_where_more_is_asked_for() -> None:
    def first(**more: Any) -> str:
        _, sections = made("numpy 2.2.6", verbose=True, **more)
        rows = section(sections, "Why this set")
        assert {row.style for row in rows[1:]} == {"dim"}
        return rows[0].text

    assert first() == "onnxruntime-gpu 1.26.0 is the newest that can work here"
    assert first(asked=True) == (
        "onnxruntime-gpu 1.26.0 is the newest that can work here and that you asked for"
    )
    assert not section(made("numpy 2.2.6")[1], "Why this set")
    _, over = made("onnxruntime-gpu 1.23.0", options=PlanOptions(latest=True), verbose=True)
    assert section(over, "Why this set")[0].text == EN.label("why-newest", version="1.26.0")
    nowhere = made("numpy 2.2.6", verbose=True, driver=None, gpus=())[1]
    assert not section(nowhere, "Why this set")
