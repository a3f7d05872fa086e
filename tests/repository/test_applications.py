"""The table of applications says of their wheels what is in them."""

from __future__ import annotations

import itertools

import pytest
from packaging.version import Version

from matrix.check_applications import code_is_there, rows

SMALL = (
    "chromadb",
    "ddddocr",
    "dghs-imgutils",
    "fastembed",
    "faster-whisper",
    "gliner",
    "kokoro-onnx",
    "onnx-asr",
    "onnxtr",
    "optimum-onnx",
    "rapid-table",
    "rembg",
    "sentence-transformers",
    "wtpsplit",
)
"""Distributions of a few megabytes at most; the script reads the others as well."""


def test_the_table_covers_what_people_ask_about() -> None:
    """The applications whose users wrote most often that their GPU is idle."""
    asked = {"rembg", "insightface", "docling-slim", "kokoro-onnx", "fastembed", "rapidocr"}

    assert asked <= {row["name"] for row in rows()}
    assert len({row["name"] for row in rows()}) >= 25


def test_a_knob_says_how_and_no_knob_says_nothing() -> None:
    assert [row["name"] for row in rows() if (row["knob"] == "none") == ("how" in row)] == []
    assert [row["name"] for row in rows() if row["asks"] == "never" and row["knob"] != "none"] == []


def test_releases_of_one_application_do_not_overlap() -> None:
    """A release has one row, so that one answer is given for it."""
    for name in {row["name"] for row in rows()}:
        spans = sorted((Version(row["since"]), Version(row["read"])) for row in rows(name))

        assert all(since <= read for since, read in spans)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.parametrize("row", rows(*SMALL), ids=lambda row: f"{row['name']}-{row['read']}")
def test_the_wheel_has_the_code_that_the_row_was_read_from(row: dict[str, str]) -> None:
    assert code_is_there(row, row["read"])
