"""When a plan looks for another way onto the GPU."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.cli.commands import plan as command
from ortgpu_fix.cli.inputs import PlanInputs
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.plan.model import Alternative, Plan
from ortgpu_fix.plan.reasons import Named
from ortgpu_fix.resolve.options import PlanOptions

WAY = Alternative(provider="tensorrt-rtx", by=Named("a-plugin", "0.5.0"), size=1)


@pytest.mark.parametrize(
    ("gpus", "flags", "looked"),
    [
        ((), (), True),
        ((), ("--json",), True),
        (("8.0",), (), False),
        (("8.0",), ("-v",), True),
        (("8.0",), ("-v", "--json"), False),
        (("8.0",), ("--json",), False),
    ],
)
def test_another_way(
    gpus: tuple[str, ...], flags: tuple[str, ...], *, looked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, shown = synthetic.facts(driver="12.8", gpus=gpus), list[Plan]()
    inputs = PlanInputs(facts, PlanOptions(), synthetic.matrix(), None, elsewhere=True)

    def show(plan: Plan, *_: Any) -> None:
        shown.append(plan)

    monkeypatch.setattr(command, "gather_inputs", lambda *_: inputs)
    monkeypatch.setattr(command, "other_ways", lambda *_: (WAY,))
    monkeypatch.setattr(command, "print_plan", show)
    monkeypatch.setattr(command, "show_age", lambda _: None)

    code = command.run(parse([*flags]).request, {}, "en")

    assert code == (1 if gpus else 3)
    assert [plan.alternatives for plan in shown] == [(WAY,) if looked else ()]
