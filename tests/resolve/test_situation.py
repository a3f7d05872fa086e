"""Facts and options in the terms of the matrix: what the rules read."""

from __future__ import annotations

from typing import Any

import pytest
from told import required

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, cuda_major_runs, situation_of, with_driver_cuda

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
        ({"version": None}, None),
        ({"version": "535.104.12"}, "12.2"),
        ({"version": "560.1"}, "12.2"),  # of the branch before
        ({"version": "535"}, "12.2"),
        ({"version": "580"}, "13.0"),
        ({"version": "580.65.06"}, "13.0"),
        ({"version": "580.65.05"}, "12.2"),  # below the floor of its CUDA
        ({"version": "580.65.05", "cuda": "13.0"}, "12.2"),  # whatever it says of itself
        ({"version": "580.65.06", "cuda": "13.0"}, "13.0"),
        ({"version": "580", "cuda": "13.0"}, "13.0"),
        ({"version": "535.104.12", "cuda": "13.0"}, "13.0"),  # cuda-compat
        ({"version": "469.9", "cuda": "11.4"}, "11.4"),
        ({"version": "470.256.02"}, "11.4"),
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


@pytest.mark.parametrize(
    ("driver", "cuda", "runs"),
    [
        *(("12.2", "12.8", True), ("13.0", "12.8", True), ("12.9", "13.0", False)),
        ("12.0", "12", True),
    ],
)
def test_a_driver_runs_what_is_built_for_its_major_and_older_ones(
    driver: str, cuda: str, *, runs: bool
) -> None:
    assert cuda_major_runs(driver, cuda) is runs


def test_platform_tag_and_gpus_are_those_of_the_matrix() -> None:
    ignored = PlanOptions(ignored_gpus=frozenset({"8.0"}))
    found = here(gpus=("8.0", "7.5"), options=ignored, platform={"machine": "aarch64"})

    assert (found.platform, found.abi) == ("linux_aarch64", "cp311")
    assert [gpu.compute_capability for gpu in found.gpus or ()] == ["7.5"]
    assert here(gpus=None, options=ignored).gpus is None
    assert here(gpus=("8.0",), options=ignored).gpus == ()


def app(name: str, *requires: str) -> dict[str, Any]:
    return {"name": name, "version": "1", "requires": [*requires]}


def demanded(at: Situation, name: str) -> list[str]:
    return [f"{row.by} {row.specifier}".strip() for row in at.demanded(name)]


def test_what_packages_that_stay_and_a_file_require_counts() -> None:
    options = PlanOptions(
        requirements=required(
            "numpy>=2",
            "other>1; sys_platform == 'win32'",
            "not a requirement !",
        )
    )
    rows = (
        app("b", "numpy<3"),
        app("onnxruntime", "numpy<1"),  # a plan replaces it
        app("nvidia-cudnn-cu12", "nvidia-cublas-cu12==1"),  # the matrix knows that
    )
    found = here(*rows, options=options)

    assert demanded(found, "numpy") == ["b 1 <3", "r.txt >=2"]
    assert demanded(found, "other") == []
    assert demanded(found, "nvidia-cublas-cu12") == []
    assert demanded(here(*rows), "numpy") == ["b 1 <3"]


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


def test_who_uses_cuda_is_listed_by_name() -> None:
    found = here("transformer 4.2", app("app", "nvidia-cudnn-cu12"), "nvidia-cudnn-cu12 9.28.0")

    assert [(row.name, row.cuda, row.cudnn, row.idle) for row in found.consumers] == [
        ("app", "12", "9", False),
        ("transformer", "12", "9", False),
    ]
    assert found.consumers[0].needs == ("libcudnn.so.9",)
    [idle] = here("transformer 4.2").consumers
    assert idle.idle


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ({"version": "535.104.12", "cuda": None, "error": None}, "12.2"),
        ({"version": "535.104.12", "cuda": "12.1", "error": None}, "12.1"),
        ({"version": None, "cuda": None, "error": "x: y"}, None),
    ],
)
def test_a_driver_that_nobody_asked_is_shown_with_what_its_version_supports(
    driver: dict[str, Any], cuda: str | None
) -> None:
    asked = here(driver=driver)

    shown = with_driver_cuda(asked.facts, asked.matrix).driver
    assert shown is not None
    assert shown.cuda == cuda


def test_no_driver_supports_nothing() -> None:
    without = here(driver=None)

    assert with_driver_cuda(without.facts, without.matrix) is without.facts
