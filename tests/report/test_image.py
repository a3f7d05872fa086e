"""What is said of an image's environment and a machine."""

from __future__ import annotations

from typing import Any

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.report.image import judged_rows
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve


def said(machine: str, gpu: str = "8.0") -> list[tuple[str, str]]:
    document: dict[str, Any] = {
        "schema": 1,
        "platform": {"system": "linux", "machine": machine},
        "driver": {"version": "580.65.06", "cuda": "13.0"},
        "gpus": [{"compute_capability": gpu}],
        "python": {"version": "3.11.2"},
        "packages": [],
    }
    plan = resolve(facts_json.from_json(document), PlanOptions(), load_matrix(torch=False))
    return [(row.text, row.style) for row in judged_rows(plan, load_texts("en"))]


def test_where_no_set_works_it_is_said_why() -> None:
    rows = said("aarch64")
    at = rows.index(("No set of packages can use the GPU there", "bold red"))
    reasons = rows[at + 1 :]

    assert "there is no wheel for linux_aarch64" in reasons[-1][0]
    assert all(text.startswith("1.") and ": " in text for text, _ in reasons)
    assert len(reasons) <= 3
    assert {style for _, style in reasons} == {"dim"}


def test_of_many_reasons_the_shortest_are_told() -> None:
    rows = said("x86_64", gpu="3.0")
    reasons = rows[rows.index(("No set of packages can use the GPU there", "bold red")) + 1 :]

    assert len(reasons) == 2


def test_where_one_works_no_release_is_refused() -> None:
    rows = said("x86_64")

    assert not any("there is no wheel" in text for text, _ in rows)
    assert rows[-1][0] == "Its sessions run on the CPU, or may; packages mend it"
