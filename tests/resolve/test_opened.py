"""What a flag of this program opens is not impossible, and only what it opens."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.apply.before_change import Allowed, check_plan_allowed
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.model import Facts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.resolve.opened import plan_for, plan_for_check
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
PINNED = {"name": "app", "version": "1", "requires": ["onnxruntime==1.24.3"]}
WHOLE = (
    *("onnxruntime-gpu 1.26.0", "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0"),
    *("flatbuffers 25.2.10", "numpy 2.4.6"),
)


def found(*packages: Any, driver: str | None = "13.0", **options: Any) -> Plan:
    """Return the plan, having held the check against it."""
    facts = synthetic.facts(*packages, driver=driver)
    made = plan_for(facts, PlanOptions(**options), MATRIX)
    checked = plan_for_check(facts, PlanOptions(**options), MATRIX)
    assert (checked.verdict, checked.needs) == (made.verdict, made.needs)
    return made


def test_a_plan_that_works_as_things_are_needs_nothing() -> None:
    made = found("onnxruntime 1.22.1")

    assert (made.verdict, made.needs) == ("fixable", ())
    assert made == resolve(
        synthetic.facts("onnxruntime 1.22.1", driver="13.0"), PlanOptions(), MATRIX
    )


def test_what_packages_require_is_let_go_where_nothing_works_otherwise() -> None:
    made = found(PINNED, "onnxruntime 1.24.3")

    assert (made.verdict, made.needs, made.release) == ("fixable", ("conflicts",), "1.31.0")
    assert made.allowances == ("conflicts",)
    asked = found(PINNED, "onnxruntime 1.24.3", conflicts=True)
    assert (asked.needs, asked.install, asked.allowances) == ((), made.install, ("conflicts",))


@pytest.mark.parametrize("driver", [None, "10.2"])
def test_what_the_machine_excludes_no_flag_opens(driver: str | None) -> None:
    made = found(PINNED, driver=driver)

    assert (made.verdict, made.needs) == ("impossible", ())
    assert made.works_beside is None


def test_what_the_user_requires_no_flag_lets_go() -> None:
    line = RequirementLine("r.txt", "onnxruntime-gpu==1.24.3")
    made = found(requirements=(line,))

    assert (made.verdict, made.needs) == ("impossible", ())
    assert made.works_beside is not None
    assert made.works_beside.blockers == (line,)
    asked = found(requirements=(line,), conflicts=True)
    assert (asked.verdict, asked.works_beside) == ("impossible", made.works_beside)


def test_what_was_unmet_before_and_needs_no_change_is_healthy() -> None:
    asks = {"name": "app", "version": "1", "requires": ["onnxruntime-gpu<1.17"]}

    assert found(*WHOLE, asks).verdict == "healthy"
    assert resolve(facts_of(*WHOLE, asks), PlanOptions(), MATRIX).verdict == "impossible"


def facts_of(*packages: Any) -> Facts:
    return synthetic.facts(*packages, driver="13.0")


def test_apply_refuses_it_without_the_flags() -> None:
    made = found(PINNED, "onnxruntime 1.24.3")

    with pytest.raises(Error) as refused:
        check_plan_allowed(made, Allowed(conflicts=True))
    assert refused.value.code == "needs-flags"
    assert refused.value.values["flags"] == "--allow conflicts"
    both = made._replace(needs=("torch", "conflicts"))
    with pytest.raises(Error) as refused:
        check_plan_allowed(both, Allowed())
    assert refused.value.values["flags"] == "--torch match --allow conflicts"
    asked = found(PINNED, "onnxruntime 1.24.3", conflicts=True)
    check_plan_allowed(asked, Allowed(conflicts=True))


def test_a_user_of_cuda_that_would_lose_it_is_named() -> None:
    """Two that load cuDNN 9 of two CUDAs: no release goes with both."""
    rows = ("transformer 4.2", "nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
    other = {"name": "other", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    made = found(*rows, other, "nvidia-cudnn-cu13 9.28.0", "nvidia-cublas 13.0.2")

    assert made.needs == ("conflicts",)
    [told] = [row for row in made.findings if row.code == "would-conflict"]
    assert "CUDA" in str(dict(told.values)["by"])
