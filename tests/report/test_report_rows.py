"""Matrix, verification and explanations, row by row from values, with the styles."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.guests.explain.fix import Fix
from ortgpu_fix.guests.explain.observation import Observation
from ortgpu_fix.guests.explain.report import explanation_json, explanation_sections
from ortgpu_fix.log_lines.explanations import Explanation, LogLine
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import Row
from ortgpu_fix.messages.shells import PROGRAM
from ortgpu_fix.plan.reasons import Reason, finding, reason
from ortgpu_fix.report.matrix import (
    builds_in_order,
    floor,
    overview_json,
    overview_sections,
    pythons,
    release_json,
    release_sections,
)
from ortgpu_fix.report.verification import verification_sections
from ortgpu_fix.verify.verification import LoadedLibrary, Verification

EN = load_texts("en")


def matrix(**changes: Any) -> Matrix:
    tables = synthetic.tables()
    for row in tables["onnxruntime"]["build"]:
        row.update(changes)
    return matrix_parse.parse(tables, "sha256:invented", {})


def only(tags: str) -> str:
    wheels = [
        {"python": tag, "size": 1, "sha256": "0" * 64, "file": f"a-1-{tag}-{tag}-linux_x86_64.whl"}
        for tag in tags.split()
    ]
    return pythons(matrix(wheels=wheels).builds[0])


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ("cp311", "3.11"),
        ("cp311 cp310", "3.10-3.11"),
        ("cp38 cp39 cp310 cp312", "3.8-3.10, 3.12"),
        ("cp310 cp312 cp314", "3.10, 3.12, 3.14"),
        ("cp313 cp313t cp314t", "3.13, 3.13t, 3.14t"),
        ("cp36m cp37m", "3.6-3.7"),
    ],
)
def test_runs_of_pythons_are_drawn_together(tags: str, said: str) -> None:
    assert only(tags) == said


def test_the_floor_of_a_build_is_that_of_its_system() -> None:
    made = matrix()
    by_cuda = {build.version: floor(build, made) for build in made.builds}
    windows = matrix_parse.parse(synthetic.windows_tables(), "", {})

    assert (by_cuda["1.18.0"], by_cuda["1.31.0"]) == ("450.80.02", "580.65.06")
    assert floor(windows.builds[0], windows) in {"452.39", "527.41", "580.88"}
    unknown = made._replace(floors=())
    assert floor(unknown.builds[0], unknown) == "?"


def test_the_newest_release_comes_first_and_its_platforms_by_name() -> None:
    assert [(row.version, row.platform) for row in builds_in_order(matrix())] == [
        ("1.31.0", "linux_aarch64"),
        ("1.31.0", "linux_x86_64"),
        ("1.26.0", "linux_x86_64"),
        ("1.23.0", "linux_x86_64"),
        ("1.18.0", "linux_x86_64"),
    ]


def test_the_overview_tells_each_build_in_three_rows() -> None:
    first, *_, last = overview_sections(matrix(), EN)

    assert first.heading == "onnxruntime-gpu 1.31.0"
    assert len(first.rows) == 2 * 3
    assert first.rows[0].head == "linux_aarch64"
    assert first.rows[3].text.endswith(", glibc >= 2.28")
    assert "driver" in first.rows[3].text
    assert "580.65.06" in first.rows[3].text
    assert first.rows[4] == Row(text="Python 3.11-3.13, 3.13t")
    assert (first.rows[5].style, "PTX" in first.rows[5].text) == ("dim", False)
    assert [(row.style, "2026-01-01" in row.text) for row in last.rows] == [("dim", True)]
    without = overview_sections(matrix(glibc=None), EN)[0]
    assert "glibc" not in without.rows[3].text


def test_the_document_of_the_overview_tells_what_a_build_runs_on() -> None:
    found: Any = overview_json(matrix())

    assert (found["schema"], found["matrix"]) == (
        1,
        {"date": "2026-01-01", "digest": "sha256:invented"},
    )
    assert found["releases"][2] == {
        "version": "1.26.0",
        "platform": "linux_x86_64",
        "cuda": "12.8",
        "cudnn": "9",
        "driver": "525.60.13",
        "glibc": "2.28",
        "pythons": ["cp310", "cp311", "cp312"],
        "sass": ["6.0", "7.0", "7.5", "8.0", "8.6", "9.0"],
        "ptx": ["9.0"],
    }


ROWS = [
    {
        "version": "1.26.0",
        "platform": "linux_x86_64",
        "cuda": "12.8",
        "cuda_source": "https://cuda",
        "requires": ["flatbuffers", "numpy"],
        "partial": ["9.0"],
    }
]
FLOORS = [{"cuda": "11", "source": "https://old"}, {"cuda": "12", "source": "https://driver"}]


def test_one_release_with_its_sources() -> None:
    build, sources, wheels, _ = release_sections(matrix(), ROWS, FLOORS, "1.26.0", EN)

    assert build.heading == "onnxruntime-gpu 1.26.0, linux_x86_64"
    assert {row.head: row.text for row in build.rows if row.head} == {
        "libcublas.so.12": EN.label("matrix-linked") + ", nvidia-cublas-cu12 >= 12.2.0",
        "libcudnn.so.9": EN.label("matrix-linked") + ", nvidia-cudnn-cu12 >= 9.0.0",
        "libcuda.so.1": EN.label("matrix-linked"),
        "libnvinfer.so.10": EN.label("matrix-tensorrt"),
        EN.label("matrix-requires"): "flatbuffers, numpy",
    }
    assert Row(text=EN.label("matrix-partial", targets="9.0"), style="dim") in build.rows
    assert [(row.head, row.text) for row in sources.rows] == [
        ("CUDA", "https://cuda"),
        ("cuDNN", EN.label("matrix-cudnn")),
        (EN.label("driver"), "https://driver"),
    ]
    assert [row.head for row in wheels.rows] == ["cp310", "cp311", "cp312"]
    plain = [{**ROWS[0], "partial": []}]
    unknown = release_sections(matrix(), plain, FLOORS[:1], "1.26.0", EN)
    assert unknown[1].rows[2].text == "?"
    assert EN.label("matrix-partial", targets="9.0") not in {row.text for row in unknown[0].rows}


def test_a_release_of_two_platforms_is_told_with_the_libraries_that_each_links_or_loads() -> None:
    tables = synthetic.tables()
    arm, x86 = (row for row in tables["onnxruntime"]["build"][::-1] if row["version"] == "1.31.0")
    arm["needs"][1]["how"] = "loads"
    made = matrix_parse.parse(tables, "", {})
    rows = [{**ROWS[0], "version": "1.31.0", "platform": row["platform"]} for row in (x86, arm)]
    sections = release_sections(made, rows, FLOORS, "1.31.0", EN)

    assert [each.heading for each in sections if "1.31.0" in each.heading] == [
        *("onnxruntime-gpu 1.31.0, linux_aarch64", "onnxruntime-gpu 1.31.0, linux_x86_64"),
    ]
    assert len(sections) == 2 * 3 + 1
    said = [row.text for each in sections for row in each.rows if row.head == "libcudnn.so.9"]
    brings = ", nvidia-cudnn-cu13 >= 9.0.0"
    assert said == [EN.label(code) + brings for code in ("matrix-loaded", "matrix-linked")]
    nvinfer = [
        each.heading
        for each in sections
        for row in each.rows
        if row.text == EN.label("matrix-tensorrt")
    ]
    assert nvinfer == ["onnxruntime-gpu 1.31.0, linux_x86_64"]  # the other has no such provider


def test_a_release_that_left_the_index_and_one_that_never_was() -> None:
    first, _ = release_sections(matrix(), ROWS, FLOORS, "1.16.1", EN)
    gone: Any = release_json(matrix(), ROWS, FLOORS, "1.16.1")

    assert first.heading == "onnxruntime-gpu 1.16.1"
    assert [(row.head, row.text) for row in first.rows] == [
        ("", EN.label("matrix-gone")),
        (EN.label("matrix-sources"), "https://g, read 2026-01-01"),
    ]
    assert gone["releases"] == [
        {"version": "1.16.1", "gone": True, "source": "https://g, read 2026-01-01"}
    ]
    assert gone["drivers"] == []
    assert release_sections(matrix(), ROWS, FLOORS, "9.9", EN) == ()
    assert release_json(matrix(), ROWS, FLOORS, "9.9") is None
    there: Any = release_json(matrix(), ROWS, FLOORS, "1.26.0")
    assert (there["releases"], there["drivers"]) == (ROWS, FLOORS[1:])


@pytest.mark.parametrize(
    ("verdict", "style"),
    [
        ("works", "bold green"),
        ("no-gpu", "bold"),
        ("crashed", "bold red"),
    ],
)
def test_a_verification_in_words(verdict: Any, style: str) -> None:
    found = Verification(
        verdict=verdict,
        notes=(Reason(code="model-memory", values=()),),
        evidence=("driver: l",),
        libraries=(
            LoadedLibrary(name="a", path="/v/site-packages/nvidia/lib/a"),
            LoadedLibrary(name="b", path="/usr/lib/b"),
            LoadedLibrary(name="c", path="/usr/lib/c"),
        ),
    )
    sections = verification_sections(found, EN)

    assert [each.heading for each in sections] == [
        EN.label("verification"),
        EN.label("seen"),
        EN.label("loaded-from", folder="/v/site-packages"),
        EN.label("loaded-from", folder="/usr/lib"),
    ]
    rows = sections[0].rows
    assert (rows[0].text, rows[0].style) == (EN.verdict(verdict, ()), style)
    assert rows[-2:] == (
        Row(text=EN.verdict("model-memory", ())),
        Row(text=EN.verdict("model-memory", (), "hint"), style="dim"),
    )
    assert sections[1].rows == (Row(text="driver: l", style="dim"),)
    assert sections[2].rows == (Row(head="a", text="nvidia/lib/a", style="dim"),)
    assert [row.text for row in sections[3].rows] == ["b", "c"]
    quiet = verification_sections(found, EN, verbose=False)
    assert len(quiet) == (4 if verdict == "crashed" else 1)
    hint = EN.verdict(verdict, (), "hint", command=PROGRAM)
    told = verification_sections(found, EN, verbose=False, elsewhere=True)[0].rows
    if hint:  # of a crash that a note explains, what helps is told once, with the note
        assert (Row(text=hint) in rows) is (verdict != "crashed")
        assert Row(text=hint) not in told


def explained(code: str = "a-failure", **more: Any) -> Explanation:
    values: dict[str, Any] = {
        "code": code,
        "severity": "error",
        "what": "what is wrong",
        "line": "E: no",
        "line_number": 7,
        "cause": "the cause",
        "remedy": "the remedy",
        "commands": ("ortgpu-fix --apply", "sudo reboot"),
        "fixable": True,
        "sources": ("https://1", "https://2", "https://3"),
        "evidence": (LogLine(line="  E: no ", line_number=7, message="E: no"),),
        "owner_commands": ("sudo reboot",),
    }
    return Explanation(**{**values, **more})


def test_an_explanation_in_words() -> None:
    one = explained(consequences=("b", "c"), ask="which GPU?", origin="comfyui")
    seen, said = explanation_sections([one], EN, origins={"comfyui": "ComfyUI"})

    assert (seen.heading, [row.text for row in seen.rows]) == (
        *("error[a-failure]: what is wrong", ["--> 7", " |  E: no"]),
    )
    assert [(row.head, row.text, row.unwrapped) for row in said.rows] == [
        ("cause:", "the cause", False),
        ("", "The log is from ComfyUI", False),
        ("fix:", "the remedy", False),
        ("", "sudo reboot  # for the owner of the host", True),
        ("ask:", "which GPU?", False),
        ("also:", "b, c", False),
        ("more:", "https://1", False),
    ]


def test_what_the_machine_says_of_each_and_what_fixes_it() -> None:
    told = finding("gpu-build-missing", "error")
    here = [
        Observation("confirmed", findings=(told, told)),
        Observation("not-so", why=reason("here-healthy")),
        Observation("unseen", why=reason("here-only-there")),
    ]
    mends = Fix(reason("mend-here"), ("--apply",), code="a-failure")
    rows = [explained(ask="?"), *(explained(code, ask="?") for code in ("other", "third", "last"))]
    sections = explanation_sections(
        *(rows, EN, here, mends), command="ortgpu-fix --apply", installs=["a 1"], machine="host"
    )

    first, second, third, fourth = ([*each.rows] for each in sections[1::2])
    assert [row for row in first if row.head == "host:"] == [
        Row(head="host:", text="confirmed. onnxruntime-gpu is not installed", style="bold")
    ]
    assert [(row.head, row.text, row.unwrapped) for row in first[2:5]] == [
        ("fix:", "Run this", False),
        ("", "ortgpu-fix --apply", True),
        ("", "installs a 1", False),
    ]
    assert (second[1].head, second[1].style) == ("host:", "green")
    assert (third[1].head, third[1].style) == ("host:", "dim")
    assert [row.head for row in fourth] == ["cause:", "fix:", "", "more:"]


@pytest.mark.parametrize(("state", "asks"), [("confirmed", False), ("unseen", True)])
def test_what_decides_is_asked_where_the_machine_does_not_show_it(
    state: Any, *, asks: bool
) -> None:
    here = [Observation(state, why=reason("here-only-there"))]
    _, said = explanation_sections([explained(ask="which GPU?")], EN, here)

    assert ("ask:" in [row.head for row in said.rows]) is asks


@pytest.mark.parametrize("command", ["", "ortgpu-fix"])
@pytest.mark.parametrize("code", ["gpu-build-missing", "copy-outside"])
def test_what_mends_it_ends_with_what_there_is_of_finding_remedy_and_command(
    code: str, command: str
) -> None:
    said = finding(code, "info", distribution="a")  # the second one needs no remedy
    mends = Fix(reason("mend-by-hand"), finding=said)
    [*_, last] = explanation_sections([explained()], EN, (), mends, command=command)

    texts = (EN.reason(mends.why), EN.summary(said), EN.remedy(said), command)
    assert [row.text for row in last.rows] == [text for text in texts if text]
    assert bool(EN.remedy(said)) is (code != "copy-outside")


def test_the_document_of_explanations() -> None:
    here = [Observation("confirmed", findings=(finding("gpu-build-missing", "error"),))]
    mends = Fix(reason("mend-here"), ("--apply",))
    found: Any = explanation_json(
        [explained(), explained("b", certain=False)], EN, here, mends, command="ortgpu-fix --apply"
    )
    one, two = found["explanations"]

    assert (found["schema"], one["code"], one["certainty"], two["certainty"]) == (
        *(1, "a-failure", "named", "general"),
    )
    assert "certain" not in one
    assert one["evidence"] == [{"line": "  E: no ", "line_number": 7, "message": "E: no"}]
    assert one["here"] == {
        "state": "confirmed",
        "says": [EN.summary(here[0].findings[0])],
        "findings": ["gpu-build-missing"],
    }
    assert two["here"] is None
    assert found["mending"] == {
        "code": "mend-here",
        "text": EN.reason(mends.why),
        "command": "ortgpu-fix --apply",
        "installs": [],
    }
    bare: Any = explanation_json([explained()], EN)
    assert "mending" not in bare
    assert explanation_json([], EN, fix=mends)["mending"]["command"] is None  # type: ignore[index]
