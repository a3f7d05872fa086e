"""What `matrix` shows, on the invented matrix: exact texts, and documents."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.__main__ import main
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import AddedRows
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain, width
from ortgpu_fix.report import matrix as report
from ortgpu_fix.report import supported as matrix_runs

MATRIX = synthetic.matrix()
TEXTS = load_texts("en")
ROWS = [
    {**row, "cuda_source": "build_and_package_info.py"}
    for row in synthetic.tables()["onnxruntime"]["build"]
]
FLOORS = [{**row, "source": "https://d"} for row in synthetic.tables()["drivers"]["floor"]]


OVERVIEW = """\
onnxruntime-gpu 1.31.0
  linux_aarch64  CUDA 13.0, cuDNN 9, driver >= 580.65.06, glibc >= 2.28
                 Python 3.10-3.12
                 GPU code 9.0 12.1a
  linux_x86_64   CUDA 13.0, cuDNN 9, driver >= 580.65.06, glibc >= 2.28
                 Python 3.11-3.13, 3.13t
                 GPU code 7.5 8.0 8.6 8.9 9.0 12.0a

onnxruntime-gpu 1.26.0
  linux_x86_64  CUDA 12.8, cuDNN 9, driver >= 525.60.13, glibc >= 2.28
                Python 3.10-3.12
                GPU code 6.0 7.0 7.5 8.0 8.6 9.0; PTX 9.0

onnxruntime-gpu 1.23.0
  linux_x86_64  CUDA 12.2, cuDNN 9, driver >= 525.60.13, glibc >= 2.28
                Python 3.10-3.12
                GPU code 6.0 7.0 7.5 8.0 8.6 9.0; PTX 9.0a

onnxruntime-gpu 1.18.0
  linux_x86_64  CUDA 11.8, cuDNN 8, driver >= 450.80.02, glibc >= 2.28
                Python 3.10-3.12
                GPU code 5.2 6.0 7.0 7.5 8.0; PTX 8.0

Data of 2026-01-01, sha256:invented"""

RUNS = """\
linux_aarch64
  1.31.0  needs driver 580.65.06 or newer for CUDA 13; the driver supports up to CUDA
          12.2

linux_x86_64
  1.31.0  needs driver 580.65.06 or newer for CUDA 13; the driver supports up to CUDA
          12.2
  1.26.0  works on Python 3.10-3.12, with CUDA 12.8, cuDNN 9.10.2
  1.23.0  works on Python 3.10-3.12, with CUDA 12.2, cuDNN 9.10.2
  1.18.0  works on Python 3.10-3.12, with CUDA 11.8, cuDNN 8.9.6

Data of 2026-01-01, sha256:invented"""


def test_the_overview() -> None:
    assert plain(report.overview_sections(MATRIX, TEXTS)) == OVERVIEW


def test_what_runs() -> None:
    sections = matrix_runs.runs_sections(MATRIX, "535.104", ["7.0"], TEXTS)

    assert plain(sections) == RUNS


def test_code_for_a_gpu_in_some_files_only_is_said() -> None:
    rows = [{**row, "partial": ["12.0a"]} for row in ROWS]

    said = plain(report.release_sections(MATRIX, rows, FLOORS, "1.26.0", TEXTS))

    assert "12.0a is only partly supported: some operators" in said


def test_a_release_that_left_the_index() -> None:
    said = plain(report.release_sections(MATRIX, ROWS, FLOORS, "1.16.1", TEXTS))
    document: Any = report.release_json(MATRIX, ROWS, FLOORS, "1.16.1")

    assert "removed from the package index" in said
    assert "https://g, read 2026-01-01" in said
    assert document["releases"] == [
        {"version": "1.16.1", "gone": True, "source": "https://g, read 2026-01-01"}
    ]


def test_a_release_that_is_not_there() -> None:
    assert report.release_sections(MATRIX, ROWS, FLOORS, "1.0", TEXTS) == ()
    assert report.release_json(MATRIX, ROWS, FLOORS, "1.0") is None


def test_pythons_are_drawn_together() -> None:
    tags = ("cp37m", "cp38", "cp310", "cp313", "cp313t")
    tables = synthetic.tables()
    tables["onnxruntime"]["build"] = [synthetic.build("1.0", "12.8", sass=(), pythons=tags)]
    [build] = matrix_parse.parse(tables, "sha256:x").builds

    assert report.pythons(build) == "3.7-3.8, 3.10, 3.13, 3.13t"


def test_the_documents() -> None:
    every: Any = report.overview_json(MATRIX)
    one: Any = report.release_json(MATRIX, ROWS, FLOORS, "1.26.0")
    runs: Any = matrix_runs.runs_json(MATRIX, "535.104", ["7.0"], TEXTS)

    assert [row["version"] for row in every["releases"]][:2] == ["1.31.0", "1.31.0"]
    assert every["releases"][0] == {
        "version": "1.31.0",
        "platform": "linux_aarch64",
        "cuda": "13.0",
        "cudnn": "9",
        "driver": "580.65.06",
        "glibc": "2.28",
        "pythons": ["cp310", "cp311", "cp312"],
        "sass": ["9.0", "12.1a"],
        "ptx": [],
    }
    assert one["releases"][0]["wheels"][0]["sha256"] == "0" * 64
    assert one["drivers"] == [FLOORS[1]]
    why = [[each["code"] for each in row["reasons"]] for row in runs["releases"]]
    assert ["driver-too-old" in codes for codes in why] == [True, True, False, False, False]
    assert why[2:] == [[], [], []]
    assert [(row["version"], row["runs"]) for row in runs["releases"]] == [
        ("1.31.0", False),
        ("1.31.0", False),
        ("1.26.0", True),
        ("1.23.0", True),
        ("1.18.0", True),
    ]
    assert runs["releases"][2]["packages"] == [
        {"name": "nvidia-cublas-cu12", "version": "12.8.4"},
        {"name": "nvidia-cudnn-cu12", "version": "9.10.2"},
    ]


def test_rows_of_an_index_are_told_with_it_and_the_day() -> None:
    rows = AddedRows("2026-11-22", "https://i.example/simple", ("a 1", "b 2"), alone=False)
    matrix = MATRIX._replace(added=(rows,))
    every: Any = report.overview_json(matrix)

    said = plain(report.overview_sections(matrix, TEXTS))
    assert said.endswith("\na 1, b 2: hash from https://i.example/simple, read on 2026-11-22")
    assert every["matrix"] == {
        "date": MATRIX.date,
        "digest": MATRIX.digest,
        "added": [
            {"read": "2026-11-22", "index": "https://i.example/simple", "releases": ["a 1", "b 2"]}
        ],
    }
    plainly: Any = report.overview_json(MATRIX)
    assert plainly["matrix"] == {"date": MATRIX.date, "digest": MATRIX.digest}


def test_the_real_matrix_fits_100_columns() -> None:
    matrix, texts = load_matrix(), load_texts("en")
    rows, floors = load_table("onnxruntime")["build"], load_table("drivers")["floor"]
    said = [
        plain(report.overview_sections(matrix, texts)),
        plain(matrix_runs.runs_sections(matrix, "535.104.12", ["7.0"], texts)),
        *(
            plain(report.release_sections(matrix, rows, floors, version, texts))
            for version in ("1.11.0", "1.26.0", "1.31.1")
        ),
    ]

    assert max(width(line) for text in said for line in text.splitlines()) <= 100


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "onnxruntime-gpu==1.26.0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("onnxruntime-gpu 1.26.0, ")
    assert "build_and_package_info.py" in said
    assert main(["matrix", "--gpu", "7.0", "--driver", "535"]) == 0
    assert "1.20.0 to 1.20.2" in capsys.readouterr().out


def test_a_major_without_a_floor() -> None:
    tables = synthetic.tables()
    tables["drivers"]["floor"] = []
    matrix = matrix_parse.parse(tables, "sha256:x")

    said = plain(report.release_sections(matrix, ROWS, [], "1.26.0", TEXTS))

    assert "driver >= ?" in said
    assert "Driver  ?" in said
