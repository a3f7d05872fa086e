"""When a plan looks for another way onto the GPU, and for what installs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from example_target import TARGET

import synthetic
from ortgpu_fix.cli.commands import plan as command
from ortgpu_fix.cli.inputs import PlanInputs
from ortgpu_fix.cli.parser import parse
from ortgpu_fix.facts.target import Target
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import OtherWay, Plan
from ortgpu_fix.plan.reasons import Named
from ortgpu_fix.resolve.options import PlanOptions

WAY = OtherWay(provider="tensorrt-rtx", by=Named("a-plugin", "0.5.0"), size=1)


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

    code = command.run(parse([*flags]), {}, "en")

    assert code == (1 if gpus else 3)
    assert [plan.ways for plan in shown] == [(WAY,) if looked else ()]


@pytest.mark.parametrize(
    ("gpus", "target", "python", "told"),
    [
        (("8.0",), TARGET, "3.8.18", True),
        (("8.0",), TARGET, "3.99.0", False),
        (("8.0",), None, "3.8.18", False),
        ((), TARGET, "3.8.18", False),
    ],
)
def test_that_nothing_can_install_is_told_by_the_plan(
    gpus: tuple[str, ...],
    target: Target | None,
    python: str,
    *,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = synthetic.facts(driver="12.8", gpus=gpus)
    there = target and target._replace(version=python, pip_version=None)
    inputs = PlanInputs(facts, PlanOptions(), synthetic.matrix(), there, elsewhere=False)
    pip = {"Requires-Python": ">=3.10", "Version": "26.3"}
    monkeypatch.setattr(command, "gather_inputs", lambda *_: inputs)
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: pip)
    monkeypatch.setattr("sysconfig.get_path", lambda _: "/nowhere")
    monkeypatch.setattr(command, "show_age", lambda _: None)

    command.run(parse(["--json"]), {"PATH": "/nowhere"}, "en")
    findings = json.loads(capsys.readouterr().out)["findings"]
    command.run(parse([]), {"PATH": "/nowhere"}, "en")
    said = capsys.readouterr().out

    assert (findings[0]["code"] == "no-engine") == told
    assert [row["code"] for row in findings[1:]] or not told
    assert [row["severity"] for row in findings if row["code"] == "no-engine"] == ["error"] * told
    assert (f"into this Python {python} was found" in said) == told
    assert (load_texts("en").label("fixable-after") in " ".join(said.split())) == told
