"""Which releases run on some GPUs with some driver: each build on its own platform and Python."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.supported import judge_builds, runs_sections

EN = load_texts("en")
MATRIX = synthetic.matrix()


def judged(driver: str, *gpus: str) -> dict[tuple[str, str], list[str]]:
    return {
        (row.build.version, row.build.platform): [why.code for why in row.reasons]
        for row in judge_builds(MATRIX, driver, gpus)
    }


def test_each_build_is_asked_on_its_own_platform_with_the_newest_python_that_it_has() -> None:
    releases = ("1.31.0", "1.26.0", "1.23.0", "1.18.0")
    builds = [("1.31.0", "linux_aarch64"), *((release, "linux_x86_64") for release in releases)]
    assert judged("580.65.06", "9.0") == {build: [] for build in builds}
    old = {version: codes for (version, _), codes in judged("580.65.06", "5.2").items()}
    assert [version for version, codes in old.items() if not codes] == ["1.18.0"]
    assert old["1.31.0"][0] == "no-gpu-code"
    older = judged("535.104.12", "8.0")
    assert older["1.31.0", "linux_x86_64"] == ["driver-too-old"]
    assert older["1.26.0", "linux_x86_64"] == []


@pytest.mark.parametrize(("driver", "codes"), [("580.70", ["driver-too-old"]), ("580.88", [])])
def test_a_build_for_windows_needs_the_driver_of_windows(driver: str, codes: list[str]) -> None:
    windows = matrix_parse.parse(synthetic.windows_tables(), "", {})
    [newest] = [
        row for row in judge_builds(windows, driver, ["9.0"]) if row.build.version == "1.31.0"
    ]

    assert [why.code for why in newest.reasons if why.code == "driver-too-old"] == codes
    assert judged(driver, "9.0")["1.31.0", "linux_x86_64"] == []


def test_a_build_for_free_threaded_pythons_alone_is_asked_with_one() -> None:
    tables = synthetic.tables()
    row = tables["onnxruntime"]["build"][3]
    row["wheels"] = [wheel for wheel in row["wheels"] if wheel["python"] == "cp313t"]
    found = judge_builds(matrix_parse.parse(tables, "", {}), "580.65.06", ["9.0"])

    [judgement] = [
        one
        for one in found
        if (one.build.version, one.build.platform) == ("1.31.0", "linux_x86_64")
    ]
    assert judgement.reasons == ()
    assert judgement.candidate.wheel is not None


@pytest.mark.parametrize(
    ("text", "lines"),
    [("a " * 60, [77, 41]), (f"{'b' * 78} c", [78, 1]), ("驱" * 100, [39, 39, 22])],
)
def test_a_line_leaves_room_for_a_head_however_wide_its_characters_are(
    text: str, lines: list[int]
) -> None:
    reasons = {**EN.table["reasons"], "no-gpu-code": {"text": {"en": text}}}
    texts = EN._replace(table={**EN.table, "reasons": reasons})
    arm, _, _ = runs_sections(MATRIX, "580.65.06", ["5.2"], texts)

    assert [len(row.text) for row in arm.rows] == lines
    assert [row.head for row in arm.rows] == ["1.31.0", *("" for _ in lines[1:])]


def test_what_runs_is_green_and_what_does_not_is_dim() -> None:
    _, x86, _ = runs_sections(MATRIX, "580.65.06", ["5.2"], EN)

    assert [(row.head, row.style) for row in x86.rows if row.head] == [
        *(("1.31.0", "dim"), ("1.26.0", "dim"), ("1.23.0", "dim"), ("1.18.0", "green")),
    ]
