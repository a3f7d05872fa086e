"""One plan for many machines, and the smallest split where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from told import required

import synthetic
from ortgpu_fix.guests.machines.facts_files import machine_names
from ortgpu_fix.guests.machines.model import FleetPlan
from ortgpu_fix.guests.machines.plan_report import fleet_sections
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.lock.groups import FleetMachine, group_names
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.resolve.options import PlanOptions

MATRIX = synthetic.matrix()


def machine(name: str, *packages: Any, **changes: Any) -> FleetMachine:
    return FleetMachine(name=name, facts=synthetic.facts(*packages, **changes))


def planned(*machines: FleetMachine, with_cpu: bool = False, **options: Any) -> FleetPlan:
    return plan_fleet(machines, PlanOptions(**options), MATRIX, with_cpu=with_cpu)


def groups(made: FleetPlan) -> list[tuple[str, list[str]]]:
    return [(group.version, [each.name for each in group.machines]) for group in made.groups]


def versions(made: FleetPlan, group: int = 0, target: int = 0) -> dict[str, str]:
    plan = made.groups[group].targets[target].plan
    return {wheel.name: wheel.version for wheel in plan.selection}


def test_who_wants_tensorrt_gets_it_on_all_machines() -> None:
    machines = machine("new", driver="13.0"), machine("old", driver="12.2", python="3.10.0")
    made = planned(*machines, provider="tensorrt")

    assert [versions(made, target=at).get("tensorrt-cu12-libs") for at in (0, 1)] == ["10.16.1"] * 2
    assert "tensorrt-cu12-libs" not in versions(planned(*machines))


def test_machines_without_a_gpu_get_the_cpu_build_on_request() -> None:
    machines = machine("server"), machine("ci", driver=None, gpus=())

    without, served = planned(*machines), planned(*machines, with_cpu=True)

    assert [each.name for each in without.without_gpu] == ["ci"]
    assert not without.complete
    assert groups(served) == [("1.26.0", ["server"]), ("1.26.0", ["ci"])]
    assert served.groups[1].targets[0].plan.requires == ("onnxruntime==1.26.0",)
    assert served.complete


def test_machines_of_one_kind_are_planned_as_if_each_had_facts_of_its_own() -> None:
    one = machine("a", driver="13.0")
    shared = planned(one, FleetMachine(name="b", facts=one.facts), machine("old", driver="11.7"))
    own = planned(one, machine("b", driver="13.0"), machine("old", driver="11.7"))

    assert shared == own
    assert {name for _, names in groups(shared) for name in names} == {"a", "b", "old"}


def test_of_two_smallest_splits_the_one_counts_that_serves_more_machines_better() -> None:
    """With 1.31.0 for one machine, ten would have to do with 1.18.0 instead of 1.26.0."""
    new: dict[str, Any] = {"python": "3.12.1", "driver": "13.0", "gpus": ("9.0",)}
    ten = [machine(f"m{at}", python="3.10.1", driver="12.8") for at in range(10)]
    old = {"name": "old-app", "version": "1", "requires": ["onnxruntime<1.20"]}
    made = planned(
        *ten,
        machine("new", {"name": "app", "version": "1", "requires": ["onnxruntime>=1.26"]}, **new),
        machine("old", old, driver="11.8"),
    )

    assert [version for version, _ in groups(made)] == ["1.26.0", "1.18.0"]
    assert groups(made)[1][1] == ["old"]


def pinned(version: str) -> dict[str, Any]:
    return {"name": "app", "version": "1", "requires": [f"nvidia-cudnn-cu12=={version}"]}


def test_a_release_that_works_on_each_but_not_with_the_same_wheels() -> None:
    """One lock holds one cuDNN for Linux, and the two machines pin two."""
    made = planned(machine("a", pinned("9.1.0")), machine("b", pinned("9.28.0")), cuda="12")

    assert groups(made) == [("1.26.0", ["a"]), ("1.26.0", ["b"])]
    assert group_names(made.groups) == ("1", "2")
    excluded = {row.version: [each.reasons[0].code for each in row.by] for row in made.excluded}
    assert excluded["1.31.0"] == ["driver-too-old"]
    assert excluded["1.26.0"] == ["no-common-set"]


ARM = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.35"}


def two_platforms(x86: list[str], arm: list[str], newer: str | None = None) -> FleetPlan:
    """Plan for two platforms, with these releases of cuBLAS 13 on each.

    CUDA 13.0.0 has cuBLAS 13.0.2, CUDA 13.0.1 has `newer`, or none that is known.
    """
    tables = synthetic.tables()
    kinds = tables["nvidia"]["distribution"]
    [cublas] = [row for row in kinds if row["name"] == "nvidia-cublas"]
    tables["toolkits"]["toolkit"] = [
        {"version": "13.0.1", "components": {"nvidia-cublas": newer} if newer else {}},
        {"version": "13.0.0", "components": {"nvidia-cublas": "13.0.2"}},
    ]
    cublas["releases"] = [
        {**cublas["releases"][0], "version": version, "platform": platform}
        for platform, versions in ((synthetic.LINUX, x86), ("linux_aarch64", arm))
        for version in versions
    ]
    for row in cublas["files"]:
        row["versions"] = [*x86, *arm]
    [cudnn] = [row for row in kinds if row["name"] == "nvidia-cudnn-cu13"]
    cudnn["releases"] += [{**row, "platform": "linux_aarch64"} for row in cudnn["releases"]]
    cudnn["files"] += [{**row, "platform": "linux_aarch64"} for row in cudnn["files"]]
    cudnn["code"] = []
    machines = [
        machine("x86", driver="13.0", gpus=("9.0",)),
        machine("arm", driver="13.0", gpus=("9.0",), platform=ARM),
    ]
    return plan_fleet(machines, PlanOptions(), matrix_parse.parse(tables, "sha256:invented"))


def cublas(made: FleetPlan) -> dict[str, str]:
    return {
        target.platform: wheel.version
        for group in made.groups
        for target in group.targets
        for wheel in target.plan.selection
        if wheel.name == "nvidia-cublas"
    }


def test_of_the_versions_that_platforms_share_the_newest_is_taken() -> None:
    made = two_platforms(["13.0.9", "13.0.10", "13.0.11"], ["13.0.9", "13.0.10"])

    assert cublas(made) == {"linux_aarch64": "13.0.10", "linux_x86_64": "13.0.10"}


def test_platforms_without_a_common_version_have_their_own() -> None:
    made = two_platforms(["13.0.2", "13.0.5"], ["13.0.4"])

    assert groups(made) == [("1.31.0", ["arm", "x86"])]
    assert cublas(made) == {"linux_aarch64": "13.0.4", "linux_x86_64": "13.0.5"}
    said = plain(fleet_sections(made, load_texts("en"), verbose=False, command="do"))
    assert "13.0.4 (linux_aarch64)" in said


def test_a_platform_that_no_wheel_serves_is_left_out() -> None:
    made = two_platforms(["13.0.2"], [])

    assert groups(made) == [("1.31.0", ["x86"])]
    assert [each.name for each, _ in made.impossible] == ["arm"]


def test_neighbours_that_are_excluded_alike_are_told_together() -> None:
    made = planned(machine("old", driver="11.7"), machine("older", driver="11.4"))
    said = plain(fleet_sections(made, load_texts("en"), verbose=False, command="do"))

    assert "1.23.0 to 1.26.0  not on old: needs driver 525.60.13 or newer for CUDA 12" in said


def test_wheels_that_share_a_folder_with_what_must_stay_are_not_taken() -> None:
    stays = {"name": "app", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    there = "nvidia-cudnn-cu13 9.12.0"
    made = planned(
        machine("a", stays, there),
        machine("same gpu", stays, there, python="3.12.1"),
        machine("free"),
        cuda="12",
    )

    assert groups(made) == [("1.26.0", ["free"])]
    assert [[why.code for why in reasons] for _, reasons in made.impossible] == [
        ["consumer-other-cuda"],
        ["consumer-other-cuda"],
    ]


def test_where_conflicts_are_allowed_nobody_has_a_say() -> None:
    stays = {"name": "app", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    made = planned(
        machine("a", stays, "nvidia-cudnn-cu13 9.12.0"),
        machine("free"),
        cuda="12",
        conflicts=True,
    )

    assert groups(made) == [("1.26.0", ["a", "free"])]


def test_a_file_of_requirements_may_need_what_shares_a_folder() -> None:
    there = "nvidia-cudnn-cu13 9.12.0"
    made = planned(machine("a", there), cuda="12", requirements=required("nvidia-cudnn-cu13"))

    assert groups(made) == []
    assert [[why.code for why in reasons] for _, reasons in made.impossible] == [["folder-owned"]]
    assert groups(planned(machine("a", there), cuda="12")) == [("1.26.0", ["a"])]


def test_platforms_of_which_each_has_the_wheels_of_another_toolkit() -> None:
    made = two_platforms(["13.0.2"], ["13.0.9"], newer="13.0.9")

    assert groups(made) == [("1.31.0", ["arm", "x86"])]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/a", "x/b"], ["a", "b"]),
        (["1/x/a", "2/x/a", "3/b"], ["1/x/a", "2/x/a", "3/b"]),
        (["a", "x/a"], ["a", "x/a"]),
    ],
)
def test_a_machine_is_called_by_as_little_of_its_path_as_tells_it_apart(
    paths: list[str], names: list[str]
) -> None:
    assert machine_names([path.split("/") for path in paths]) == tuple(names)
