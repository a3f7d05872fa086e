"""What onnxruntime can say of its providers, of a session and of its package, in all releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomllib

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

TABLE = parse_failures(load_table("failures"))
CASES = Path(__file__).parents[1] / "cases" / "onnxruntime_formats.toml"
FORMATS: list[dict[str, Any]] = tomllib.loads(CASES.read_text("utf-8"))["format"]
SAYING = [row for row in FORMATS if "says" in row]
SILENT = [row for row in FORMATS if "says" not in row]


def said(text: str) -> list[str]:
    return [each.code for each in explain_log(text, TABLE)]


@pytest.mark.parametrize("row", SAYING, ids=lambda row: row["text"].strip()[:40])
def test_a_text_of_onnxruntime_is_recognised(row: dict[str, Any]) -> None:
    assert row["says"] in said(row.get("example", row["text"]))


@pytest.mark.parametrize("row", SILENT, ids=lambda row: row["text"].strip()[:40])
def test_a_text_that_means_nothing_to_us_says_nothing(row: dict[str, Any]) -> None:
    assert said(row["text"].replace("{}", "CUDAExecutionProvider")) == []
