"""Each rule by itself: what it asks of a release, and that it says nothing of other platforms."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import Build
from ortgpu_fix.resolve import environment_rules, rules
from ortgpu_fix.resolve.candidate import Candidate, make_candidate
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()


def here(*packages: Any, platform: Any = None, **more: Any) -> Situation:
    options = more.pop("options", PlanOptions())
    document = synthetic.document(*packages, **more)
    document["platform"] |= platform or {}
    return situation_of(facts_json.from_json(document), options, MATRIX)


def build(version: str = "1.26.0", platform: str = "linux_x86_64") -> Build:
    [row] = [row for row in MATRIX.builds if row.version == version and row.platform == platform]
    return row


def candidate(at: Situation, version: str = "1.26.0", platform: str = "linux_x86_64") -> Candidate:
    return make_candidate(build(version, platform), at)


def said(rule: rules.Rule, at: Situation, *which: str) -> list[tuple[str, dict[str, str]]]:
    return [(why.code, values_of(why)) for why in rule(candidate(at, *which), at)]


@pytest.mark.parametrize(
    ("wanted", "conflict"),
    [("==25.0rc1", False), (">=25.0rc1,<25.0rc2", False), (">=25.0rc2,<25.0rc1", True)],
)
def test_a_release_before_its_time_is_one_that_can_be_required(
    wanted: str, *, conflict: bool
) -> None:
    app = {"name": "app", "version": "1", "requires": [f"flatbuffers{wanted}"]}

    assert bool(said(environment_rules.check_requirements, here(app))) is conflict


def test_why_a_release_works_names_the_driver_the_gpus_and_who_pins_what() -> None:
    torch = {"name": "app", "version": "3", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    at = here(torch, "transformer 4.2", gpus=("8.0", "12.0"), driver="12.8")
    found = [(why.code, values_of(why)) for why in rules.reasons_for(candidate(at), at)]

    assert found == [
        ("why-driver", {"cuda": "12.8", "driver_cuda": "12.8"}),
        ("why-sass", {"gpu": "8.0"}),
        ("why-ptx", {"gpu": "12.0"}),
        ("why-pinned", {"distribution": "nvidia-cudnn-cu12 9.1.0", "by": "app 3"}),
        ("why-consumers", {"by": "app 3, transformer 4.2", "cuda": "12"}),
    ]
