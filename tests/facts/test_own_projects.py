"""The user's own projects: a bound of onnxruntime that a tool wrote there is no wish."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.facts.own_projects import loosened
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve


@pytest.mark.parametrize(
    ("line", "loose"),
    [
        ("onnxruntime (<2.0.0,>=1.32.0)", "onnxruntime<2.0.0"),
        ("onnxruntime>1.31; sys_platform == 'linux'", 'onnxruntime; sys_platform == "linux"'),
        ("onnxruntime~=1.32.0", "onnxruntime==1.32.*"),
        ("OnnxRuntime_GPU[cudnn]>=1.32", "OnnxRuntime_GPU[cudnn]"),
        ("onnxruntime==1.22.*", "onnxruntime==1.22.*"),
        ("not a requirement !", "not a requirement !"),
    ],
)
def test_a_lower_bound_of_onnxruntime_goes_and_all_else_stays(line: str, loose: str) -> None:
    assert loosened(line) == loose


def _plan(requires: str, *, local: bool) -> Plan:
    """Return the plan where `app`, a project of the user or a distribution, requires this."""
    app = {"name": "app", "version": "0.1.0", "requires": [requires], "local": local}
    facts = synthetic.facts(app, "onnxruntime 1.32.0")
    return resolve(facts, PlanOptions(), load_matrix(torch=False))


def test_what_uv_add_wrote_into_the_users_project_blocks_nothing() -> None:
    made = _plan("onnxruntime>=1.32.0", local=True)
    assert made.verdict == "fixable"
    assert "would-conflict" not in {row.code for row in made.findings}


def test_the_same_bound_of_a_distribution_does() -> None:
    assert _plan("onnxruntime>=1.32.0", local=False).verdict == "impossible"


def test_nobody_is_sent_to_an_index_for_the_users_own_project() -> None:
    made = _plan("onnxruntime<1.10", local=True)
    assert made.verdict == "impossible"
    codes = {row.change.code for row in made.unlock}
    assert "own-requirement" in codes
    assert "other-version" not in codes


def test_the_users_own_project_and_another_package_are_two_changes() -> None:
    app = {"name": "app", "version": "0.1.0", "requires": ["onnxruntime<1.10"], "local": True}
    other = {"name": "other", "version": "2.0", "requires": ["onnxruntime<1.10"]}
    facts = synthetic.facts(app, other, "onnxruntime 1.9.0")
    made = resolve(facts, PlanOptions(), load_matrix(torch=False))
    changes = [
        [(why.code, [str(by) for by in why.by]) for why in row.changes] for row in made.unlock
    ]
    assert [("own-requirement", ["app 0.1.0"]), ("other-version", ["other 2.0"])] in changes


def test_an_exact_pin_of_the_users_project_stays() -> None:
    made = _plan("onnxruntime==1.22.1", local=True)
    assert (made.verdict, made.release, made.placeholder) == ("fixable", "1.22.0", "1.22.1+ortgpu")
