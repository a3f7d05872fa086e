"""How a plan by cases is shown."""

from __future__ import annotations

import synthetic
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Case, DriverRange
from ortgpu_fix.report.cases import cases_section
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve


def test_a_machine_on_which_all_is_right_already_is_a_case_and_nothing_is_said_of_others() -> None:
    facts = synthetic.facts("onnxruntime-gpu 1.26.0", "numpy 2.2.6", "flatbuffers 25.0")
    plan = resolve(facts, PlanOptions(), synthetic.matrix())._replace(verdict="healthy")
    case = Case(DriverRange("525.60.13", None), None, plan)

    shown = cases_section([case], load_texts("en"))

    assert [(row.head, row.text) for row in shown.rows] == [
        ("already OK: onnxruntime-gpu 1.26.0", "driver >= 525.60.13")
    ]


def test_a_case_says_which_drivers_and_gpus_it_has() -> None:
    plan = resolve(synthetic.facts(), PlanOptions(), synthetic.matrix())
    cases = [
        Case(DriverRange(None, None), ("8.0", "8.6"), plan),
        Case(None, ("9.0",), plan),
        Case(None, ("7.5",), plan._replace(verdict="impossible")),
    ]

    shown = cases_section(cases, load_texts("en"))

    assert [row.text for row in shown.rows] == [
        "any driver, compute capability 8.0 to 8.6",
        "compute capability 9.0",
        "otherwise",
    ]
