"""Facts and options in the terms of the matrix: what the rules read."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()


def here(
    *packages: Any, driver: Any = "12.2", platform: Any = None, options: Any = None, **more: Any
) -> Situation:
    document = synthetic.document(*packages, **more)
    document["driver"] = {"cuda": driver} if isinstance(driver, str) else driver
    document["platform"] |= platform or {}
    return situation_of(facts_json.from_json(document), options or PlanOptions(), MATRIX)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        (None, None),
        ({"cuda": "12.4", "version": "470.1"}, "12.4"),  # what it says of itself counts
        ({"version": "535.104.12"}, "12.2"),
        ({"version": "560.1"}, "12.2"),  # of the branch before
        ({"version": "580.65.06"}, "13.0"),
        ({"version": "580.65.05"}, "12.2"),  # below the floor of its CUDA
        ({"version": "580.65.05", "cuda": "13.0"}, "12.2"),  # whatever it says of itself
        ({"version": "580", "cuda": "13.0"}, "13.0"),
        ({"version": "535.104.12", "cuda": "13.0"}, "13.0"),  # cuda-compat
        ({"version": "469.9"}, None),
    ],
)
def test_the_cuda_of_a_driver_is_what_it_says_or_its_branch_has(
    driver: Any, cuda: str | None
) -> None:
    assert here(driver=driver).driver_cuda == cuda


@pytest.mark.parametrize(
    "windows", [{"system": "windows", "libc": None}, {"system": "linux", "wsl": True}]
)
def test_where_windows_has_the_driver_its_own_floors_count(windows: dict[str, Any]) -> None:
    assert here(driver={"version": "580.70"}, platform=windows).driver_cuda == "12.2"
    assert here(driver={"version": "580.88"}, platform=windows).driver_cuda == "13.0"
    assert here(platform=windows).floor("12") == "527.41"
    assert here().floor("12") == "525.60.13"
    assert here().floor("99") is None


def app(name: str, *requires: str) -> dict[str, Any]:
    return {"name": name, "version": "1", "requires": [*requires]}


def test_where_conflicts_are_allowed_only_torch_and_the_user_have_a_say() -> None:
    names = ("torch", "torchvision", "torchaudio", "cuda-toolkit", "other")
    rows = [
        app(name, "nvidia-cudnn-cu12>1", "numpy>1") | {"version": "2.5" if name == "torch" else "1"}
        for name in names
    ]
    line = RequirementLine("r.txt", "numpy<9")
    allowing = PlanOptions(conflicts=True, requirements=(line,))

    found = {row.distribution for row in here(*rows).demanded("nvidia-cudnn-cu12")}
    left = here(*rows, options=allowing)
    assert found == {*names}
    assert {row.distribution for row in left.demanded("nvidia-cudnn-cu12")} == {*names[:4]}
    assert {row.distribution for row in left.demanded("numpy")} == {*names[:4], None}
