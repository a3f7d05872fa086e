"""The line of `--check`, where the plan of a machine cannot easily be had."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import finding
from ortgpu_fix.report.check import check_line

OK = "OK: the packages and libraries for the GPU are in place (no model was run; `verify` runs one)"


@pytest.mark.parametrize(
    ("verdict", "machine", "line"),
    [
        ("healthy", "", OK),
        ("healthy", "a.json", f"a.json: {OK}"),
        ("fixable", "", "Not OK: `ortgpu-fix` shows the problems"),
        (
            *("impossible", "b.json"),
            "b.json: Not OK: no version of onnxruntime-gpu works; `ortgpu-fix` shows why",
        ),
        (
            *("unknown", ""),
            "Unknown: the driver or the GPU is not known; `ortgpu-fix` shows the possible cases",
        ),
    ],
)
def test_a_verdict_is_one_line(verdict: Any, machine: str, line: str) -> None:
    assert check_line(Plan(verdict, "", ""), machine, load_texts("en")) == line


def test_what_no_package_fixes_is_said_where_the_packages_are_right() -> None:
    shadowed = finding("onnxruntime-shadowed", "error", path="/app/onnxruntime")
    plan = Plan("healthy", "", "", findings=(shadowed,))

    said = check_line(plan, "", load_texts("en"))
    assert said.startswith("Not OK: ")
    assert "/app/onnxruntime" in said
    assert check_line(plan, "", load_texts("zh")).startswith("不正常：")
