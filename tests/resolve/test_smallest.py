"""`--prefer small`: the fewest bytes that are right by what was read, one reason a test."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.lock.groups import FleetMachine
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve import smallest
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MB = 1_000_000
CUBLAS, CUDNN, NVRTC = "nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-cuda-nvrtc-cu12"
SMALL, NEWEST = PlanOptions(small=True), PlanOptions()
USUAL = {CUBLAS: "12.8.4", CUDNN: "9.28.0"}
SIZES = {
    CUBLAS: {"12.2.5": 50, "12.8.4": 200, "12.9.1": 210},
    CUDNN: {"9.1.0": 60, "9.10.2": 40, "9.28.0": 300},
    NVRTC: {"12.2.1": 10, "12.8.1": 20},
}


def floor(name: str, first: str, last: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "platform": synthetic.LINUX,
        "first": first,
        "last": last,
        "needs": {},
        **more,
    }


def tables() -> dict[str, Any]:
    """Return the invented tables, all of whose releases were read and take nothing special."""
    made = synthetic.tables()
    kinds = {row["name"]: row for row in made["nvidia"]["distribution"]}
    for name in (CUBLAS, CUDNN):
        for release in kinds[name]["releases"]:
            release["size"] = SIZES[name].get(release["version"], 1) * MB
    made["floors"]["floor"] = [
        floor("onnxruntime-gpu", "1.18.0", "1.31.0"),
        floor(CUBLAS, "12.0.1", "12.9.1"),
        floor(CUDNN, "8.9.7", "9.28.0"),
    ]
    return made


def with_nvrtc(made: dict[str, Any]) -> None:
    """Let cuDNN load NVRTC, of which the newer release alone compiles for 9.0."""
    distributions = made["nvidia"]["distribution"]
    compiler = synthetic.distribution(NVRTC, "12", "libnvrtc.so.12", ("12.2.1", "12.8.1"))
    for release in compiler["releases"]:
        release["size"] = SIZES[NVRTC][release["version"]] * MB
    made["nvidia"]["distribution"] = [*distributions, compiler]
    next(row for row in distributions if row["name"] == CUDNN)["files"][0]["loads"] = [
        "libnvrtc.so.12"
    ]
    for toolkit in made["toolkits"]["toolkit"]:
        if toolkit["version"] == "12.8.1":
            toolkit["components"][NVRTC] = "12.8.1"
    made["floors"]["floor"] += [
        floor(NVRTC, "12.2.1", "12.2.1", targets=["8.0", "8.6"]),
        floor(NVRTC, "12.8.1", "12.8.1", targets=["8.0", "8.6", "9.0"]),
    ]


def planned(
    made: dict[str, Any], *packages: Any, options: PlanOptions = SMALL, **machine: Any
) -> Plan:
    document = synthetic.document(*packages, **{"driver": "12.8", **machine})
    return resolve(facts_json.from_json(document), options, matrix_parse.parse(made, "", {}))


def chosen(plan: Plan) -> dict[str, str]:
    return {row.name: row.version for row in plan.selection if row.name.startswith("nvidia-")}


def test_the_fewest_bytes_are_taken_where_asked_and_told_where_not() -> None:
    small, usual = planned(tables()), planned(tables(), options=NEWEST)
    assert chosen(small) == {CUBLAS: "12.2.5", CUDNN: "9.10.2"}
    assert chosen(usual) == USUAL
    assert (small.small, usual.small) == (True, False)
    assert small.bytes_saved == usual.bytes_saved == (500 - 90) * MB


def test_a_symbol_that_cudnn_takes_of_cublas_decides_about_the_pair() -> None:
    made = tables()
    made["floors"]["floor"][2:] = [
        floor(CUDNN, "8.9.7", "9.1.0"),
        floor(CUDNN, "9.10.2", "9.28.0", needs={CUBLAS: "12.8.4"}),
    ]
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.1.0"}  # 110, not 240


def test_a_symbol_that_the_provider_takes() -> None:
    made = tables()
    made["floors"]["floor"][0]["needs"] = {CUDNN: "9.28.0"}
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.28.0"}


@pytest.mark.parametrize(
    ("at", "replaced", "expected"),
    [
        pytest.param(0, [], USUAL, id="the provider"),
        pytest.param(
            1,
            [floor(CUBLAS, "12.8.4", "12.8.4")],
            {CUBLAS: "12.8.4", CUDNN: "9.10.2"},
            id="the small release",
        ),
        pytest.param(1, [], {CUBLAS: "12.8.4", CUDNN: "9.10.2"}, id="even the usual one"),
    ],
)
def test_what_nobody_read_is_not_taken(
    at: int, replaced: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    made = tables()
    made["floors"]["floor"][at : at + 1] = replaced
    assert chosen(planned(made)) == expected


def test_a_defect_bars_a_release_alone_or_beside_another() -> None:
    made = tables()
    made["limits"]["defect"] = [{"names": [CUDNN], "versions": ">=9.2,<9.20"}]
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.1.0"}
    made["limits"]["defect"][0]["beside"] = {CUBLAS: "<12.8"}
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.1.0"}
    made["limits"]["defect"][0]["beside"] = {CUBLAS: "<12.2"}
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.10.2"}


def test_a_gpu_needs_code_and_a_compiler_for_it() -> None:
    made = tables()
    with_nvrtc(made)
    ampere, hopper = planned(made, gpus=("8.0",)), planned(made, gpus=("8.0", "9.0"))
    assert chosen(ampere) == {CUBLAS: "12.2.5", CUDNN: "9.10.2", NVRTC: "12.2.1"}
    assert chosen(hopper) == {CUBLAS: "12.2.5", CUDNN: "9.10.2", NVRTC: "12.8.1"}
    assert chosen(planned(made, gpus=("8.6",), options=NEWEST)) == {**USUAL, NVRTC: "12.8.1"}


def test_what_a_smaller_release_needs_counts() -> None:
    made = tables()
    with_nvrtc(made)
    files = next(row for row in made["nvidia"]["distribution"] if row["name"] == CUDNN)["files"][0]
    for versions, loads in ((["9.1.0"], []), (["9.10.2", "9.28.0"], ["libnvrtc.so.12"])):
        files = {**files, "versions": versions, "loads": loads}
        kind = next(row for row in made["nvidia"]["distribution"] if row["name"] == CUDNN)
        kind["files"] = [files, *(row for row in kind["files"] if versions == ["9.10.2", "9.28.0"])]
    for release, size in ((0, 41), (1, 42)):
        made["nvidia"]["distribution"][-1]["releases"][release]["size"] = size * MB
    assert chosen(planned(made)) == {CUBLAS: "12.2.5", CUDNN: "9.1.0"}  # 60, not 40 and 41


def test_what_is_installed_costs_nothing_and_of_equal_ones_the_newest_is_taken() -> None:
    there = planned(tables(), f"{CUDNN} 9.28.0")
    assert chosen(there) == {CUBLAS: "12.2.5", CUDNN: "9.28.0"}
    assert CUDNN not in {row.name for row in there.install}
    alike = tables()
    kinds = {row["name"]: row for row in alike["nvidia"]["distribution"]}
    for name in (CUBLAS, CUDNN):
        for release in kinds[name]["releases"]:
            release["size"] = 40 * MB
    assert chosen(planned(alike)) == USUAL  # no other has fewer
    broken = {"name": CUDNN, "version": "9.28.0", "intact": False}
    assert chosen(planned(tables(), broken)) == {CUBLAS: "12.2.5", CUDNN: "9.10.2"}
    made = tables()
    kind = next(row for row in made["nvidia"]["distribution"] if row["name"] == CUDNN)
    for release in kind["releases"]:
        release["size"] = min(release["size"], 40 * MB) if release["version"] != "9.28.0" else MB**2
    assert chosen(planned(made))[CUDNN] == "9.10.2"


def test_the_runtime_is_that_of_the_toolkit() -> None:
    made = tables()
    runtime = "nvidia-cuda-runtime-cu12"
    row = synthetic.distribution(runtime, "12", "libcudart.so.12", ("12.2.1", "12.8.1"))
    row["releases"][0]["size"] = 1
    made["nvidia"]["distribution"].append(row)
    made["toolkits"]["toolkit"][2]["components"][runtime] = "12.8.1"
    made["floors"]["floor"].append(floor(runtime, "12.2.1", "12.8.1"))
    for build in made["onnxruntime"]["build"]:
        if build["version"] == "1.26.0":
            build["needs"].append(
                {
                    "library": "libcudart.so.12",
                    "how": "links",
                    "distribution": runtime,
                    "since": "12.2.1",
                }
            )
    assert chosen(planned(made))[runtime] == "12.8.1"


def test_a_fleet_gets_the_smallest_set_that_serves_all() -> None:
    made = tables()
    with_nvrtc(made)
    matrix = matrix_parse.parse(made, "", {})
    machines = [
        FleetMachine(
            name=gpu,
            facts=facts_json.from_json(synthetic.document(driver="12.8", gpus=(gpu,))),
        )
        for gpu in ("8.0", "9.0")
    ]
    sets = []
    for options in (SMALL, NEWEST):
        [group] = plan_fleet(machines, options, matrix).groups
        [target] = group.targets
        sets.append(chosen(target.plan))
    assert sets == [
        {CUBLAS: "12.2.5", CUDNN: "9.10.2", NVRTC: "12.8.1"},
        {**USUAL, NVRTC: "12.8.1"},
    ]


def test_the_search_is_short_on_the_real_matrix() -> None:
    """It tried 9,299 sets, for more than half of a plan's time."""
    facts = facts_json.from_json(synthetic.document(driver="13.0", gpus=("8.0",)))
    matrix, calls = load_matrix(), Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == smallest.__file__:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        plan = resolve(facts, NEWEST, matrix)
    finally:
        sys.setprofile(None)
    assert plan.bytes_saved > 0
    assert 0 < calls["extend"] < 2_000
