"""One plan for many machines, and the smallest split where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from told import required

import synthetic
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.guests.machines import planner
from ortgpu_fix.guests.machines.common_facts import common_facts
from ortgpu_fix.guests.machines.model import FleetPlan
from ortgpu_fix.guests.machines.plan_report import fleet_sections
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.guests.machines.split import FleetSolver
from ortgpu_fix.lock.groups import FleetMachine, group_names
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

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


def test_machines_of_one_description_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of hosts that names a kind of machine a thousand times."""
    facts = synthetic.facts()
    read: list[object] = []

    def counted(*values: Any) -> Situation:
        read.append(values[0])
        return situation_of(*values)

    monkeypatch.setattr(planner, "situation_of", counted)
    many = [FleetMachine(name=f"host{at}", facts=facts) for at in range(3)]
    made = planned(*many)
    together = len(read)
    planned(many[0])

    assert groups(made) == [("1.26.0", ["host0", "host1", "host2"])]
    assert together == len(read) - together  # as of one alone


def test_the_oldest_driver_decides_for_all() -> None:
    made = planned(machine("new", driver="13.0"), machine("old", driver="12.2"))

    assert groups(made) == [("1.26.0", ["new", "old"])]
    assert made.complete
    assert [row.version for row in made.excluded] == ["1.31.0"]
    assert [each.name for each in made.excluded[0].by[0].machines] == ["old"]


def test_who_wants_tensorrt_gets_it_on_all_machines() -> None:
    machines = machine("new", driver="13.0"), machine("old", driver="12.2", python="3.10.0")
    made = planned(*machines, provider="tensorrt")

    assert [versions(made, target=at).get("tensorrt-cu12-libs") for at in (0, 1)] == ["10.16.1"] * 2
    assert "tensorrt-cu12-libs" not in versions(planned(*machines))


def test_a_gpu_that_tensorrt_does_not_support_is_left_out() -> None:
    made = planned(machine("new"), machine("old", gpus=("7.0",)), provider="tensorrt")

    assert groups(made) == [("1.26.0", ["new"])]
    assert not made.complete


def test_a_fleet_without_a_common_release_is_split() -> None:
    made = planned(
        machine("old", driver="11.7", gpus=("7.0",)),
        machine("new", driver="13.0", python="3.13.0", gpus=("12.0",)),
        machine("also old", driver="11.8"),
    )

    assert groups(made) == [("1.31.0", ["new"]), ("1.18.0", ["also old", "old"])]
    assert made.complete


def test_machines_without_a_gpu_get_the_cpu_build_on_request() -> None:
    machines = machine("server"), machine("ci", driver=None, gpus=())

    without, served = planned(*machines), planned(*machines, with_cpu=True)

    assert [each.name for each in without.without_gpu] == ["ci"]
    assert not without.complete
    assert groups(served) == [("1.26.0", ["server"]), ("1.26.0", ["ci"])]
    assert served.groups[1].targets[0].plan.requires == ("onnxruntime==1.26.0",)
    assert served.complete


def test_what_is_installed_is_not_kept() -> None:
    made = planned(machine("a", "onnxruntime-gpu 1.23.0", "nvidia-cudnn-cu12 9.1.0"))

    assert versions(made)["onnxruntime-gpu"] == "1.26.0"
    assert versions(made)["nvidia-cudnn-cu12"] == "9.28.0"


@pytest.mark.parametrize(
    ("pin", "release", "cublas"),
    [
        ("==12.2.5", "1.26.0", "12.2.5"),  # older than the toolkit's, and suffices
        (">12.8.4", "1.26.0", "12.9.1"),  # of the nearest toolkit that is newer
        (">=12.0", "1.26.0", "12.8.4"),  # the toolkit's own
        ("<12.2.5", "1.18.0", None),  # lacks what the newer releases need
    ],
)
def test_what_one_machine_pins_decides_for_all(pin: str, release: str, cublas: str | None) -> None:
    pinned = {"name": "solver", "version": "1", "requires": [f"nvidia-cublas-cu12{pin}"]}

    made = planned(machine("pins", pinned, driver="12.8"), machine("free", driver="12.8"))

    assert groups(made)[0][0] == release
    assert versions(made).get("nvidia-cublas-cu12") == cublas


def test_every_gpu_of_the_fleet_is_served_by_the_same_wheels() -> None:
    made = planned(machine("volta", gpus=("7.0",)), machine("ampere", gpus=("8.0",)))

    assert versions(made)["nvidia-cudnn-cu12"] == "9.10.2"
    assert [gpu.compute_capability for gpu in made.groups[0].targets[0].facts.gpus or ()] == [
        "7.0",
        "8.0",
    ]


def test_the_gpus_of_a_fleet_are_in_order_whatever_the_order_of_its_machines() -> None:
    """By what they can do, then by name: a lock names them, and must not differ from run to run."""
    rows = [("9.0", "H100"), ("12.0", "RTX 5090"), *(("8.9", f"L4 {letter}") for letter in "DBCA")]
    made = [
        situation_of(
            synthetic.facts(gpus=None)._replace(gpus=(Gpu(name=name, compute_capability=code),)),
            PlanOptions(),
            MATRIX,
        )
        for code, name in rows
    ]

    found = common_facts(made).gpus

    assert [gpu.name for gpu in found or ()] == [
        *("L4 A", "L4 B", "L4 C", "L4 D", "H100", "RTX 5090"),
    ]


def test_what_machines_have_in_common_is_the_oldest_of_each_and_the_packages_of_all() -> None:
    one = {"name": "app", "version": "1", "requires": ["a"]}
    machines = [
        synthetic.facts(one, "b 1", driver="12.8", python="3.12.1"),
        synthetic.facts(one | {"requires": ["c"]}, "b 2", driver="12.2", python="3.11.7"),
        synthetic.facts(one, driver=None, python="3.13.0"),
    ]
    machines = [
        facts._replace(
            platform=facts.platform._replace(distribution="Ubuntu 22.04", container="docker"),
            python=facts.python._replace(executable="/x", environment="venv", project="uv"),
            environment={"PYTHONPATH": "/x"},
            sources={"gpus": "nvml"},
        )
        for facts in machines
    ]
    found = common_facts([situation_of(facts, PlanOptions(), MATRIX) for facts in machines])

    assert [(row.name, row.version, row.requires) for row in found.packages] == [
        *(("app", "1", ("a",)), ("app", "1", ("c",)), ("b", "1", ()), ("b", "2", ())),
    ]
    assert found.python.version == "3.11.7"
    assert found.driver is not None
    assert found.driver.cuda == "12.2"
    assert [gpu.compute_capability for gpu in found.gpus or ()] == ["8.0"]
    assert found.python == found.python._replace(executable=None, environment=None, project=None)
    assert (found.platform.distribution, found.platform.container) == (None, None)
    assert (found.environment, found.sources) == ({}, {})
    hidden = [situation_of(synthetic.facts(gpus=None), PlanOptions(), MATRIX)] * 2
    assert common_facts(hidden).gpus is None


def test_nothing_works_on_a_machine_and_it_says_why() -> None:
    made = planned(machine("a"), machine("ancient", driver="10.1"))

    assert groups(made) == [("1.26.0", ["a"])]
    assert [(each.name, [why.code for why in reasons]) for each, reasons in made.impossible] == [
        ("ancient", ["driver-too-old"])
    ]
    assert not made.complete


def test_machines_of_one_kind_are_planned_as_if_each_had_facts_of_its_own() -> None:
    one = machine("a", driver="13.0")
    shared = planned(one, FleetMachine(name="b", facts=one.facts), machine("old", driver="11.7"))
    own = planned(one, machine("b", driver="13.0"), machine("old", driver="11.7"))

    assert shared == own
    assert {name for _, names in groups(shared) for name in names} == {"a", "b", "old"}


def test_what_no_rule_is_about_makes_no_kind_of_its_own_and_stays_in_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: list[int] = []

    class Solver(FleetSolver):
        def __init__(self, situations: Sequence[Situation], *others: Any) -> None:
            kinds.append(len(situations))
            super().__init__(situations, *others)

    monkeypatch.setattr("ortgpu_fix.guests.machines.planner.FleetSolver", Solver)
    asks = {"web": "requests<3", "batch": "click>=8", "old": "onnxruntime<1.26"}
    made = planned(
        *(
            machine(name, {"name": name, "version": "1", "requires": [text]})
            for name, text in asks.items()
        )
    )

    assert kinds == [2]
    assert {row.name for row in made.groups[0].targets[0].facts.packages} == {*asks}


def test_no_machines_at_all() -> None:
    assert planned().groups == ()
    assert not planned().complete


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


def test_groups_are_called_by_their_cuda_or_else_by_their_release() -> None:
    older = {"name": "old-app", "version": "1", "requires": ["onnxruntime<1.24"]}
    newer = {"name": "app", "version": "1", "requires": ["onnxruntime>=1.26"]}
    ci = machine("ci", driver=None, gpus=())
    same = planned(machine("a", older), machine("b", newer), ci, with_cpu=True)
    other = planned(machine("a", driver="11.7"), machine("b", newer), ci, with_cpu=True)

    assert group_names(same.groups) == ("1.26.0", "1.23.0", "cpu")
    assert group_names(other.groups) == ("cuda12", "cuda11", "cpu")


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


def test_platforms_share_the_newest_version_that_both_have() -> None:
    made = two_platforms(["13.0.2", "13.0.5"], ["13.0.2", "13.0.4"])

    assert cublas(made) == {"linux_aarch64": "13.0.2", "linux_x86_64": "13.0.2"}


def test_platforms_without_a_common_version_have_their_own() -> None:
    made = two_platforms(["13.0.2", "13.0.5"], ["13.0.4"])

    assert groups(made) == [("1.31.0", ["arm", "x86"])]
    assert cublas(made) == {"linux_aarch64": "13.0.4", "linux_x86_64": "13.0.5"}
    said = plain(fleet_sections(made, load_texts("en"), verbose=False, command="do"))
    assert "13.0.4 (linux_aarch64)" in said


def test_platforms_of_which_each_has_the_wheels_of_another_toolkit() -> None:
    made = two_platforms(["13.0.2"], ["13.0.9"], newer="13.0.9")

    assert groups(made) == [("1.31.0", ["arm", "x86"])]
    assert cublas(made) == {"linux_aarch64": "13.0.9", "linux_x86_64": "13.0.2"}


def test_a_platform_that_no_wheel_serves_is_left_out() -> None:
    made = two_platforms(["13.0.2"], [])

    assert groups(made) == [("1.31.0", ["x86"])]
    assert [each.name for each, _ in made.impossible] == ["arm"]


def test_a_release_without_wheels_for_the_gpus_there_is_no_release_for_them() -> None:
    """1.23 has code for 9.0a alone beyond 9.0, 1.26 PTX; of cuBLAS 12 only 12.8 has code for 12.0.

    A pin to an older one leaves nothing for that GPU; the other machine is none the worse.
    """
    app = {"name": "app", "version": "1", "requires": ["nvidia-cublas-cu12==12.2.5"]}
    made = planned(
        machine("pinned", app, driver="12.8", gpus=("12.0",)),
        machine("free", driver="12.8", gpus=("12.0",)),
        cuda="12",
    )

    assert groups(made) == [("1.26.0", ["free"])]
    assert [each.name for each, _ in made.impossible] == ["pinned"]


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


def test_a_file_of_requirements_may_need_what_shares_a_folder() -> None:
    there = "nvidia-cudnn-cu13 9.12.0"
    made = planned(machine("a", there), cuda="12", requirements=required("nvidia-cudnn-cu13"))

    assert groups(made) == []
    assert [[why.code for why in reasons] for _, reasons in made.impossible] == [["folder-owned"]]
    assert groups(planned(machine("a", there), cuda="12")) == [("1.26.0", ["a"])]


def test_where_conflicts_are_allowed_nobody_has_a_say() -> None:
    stays = {"name": "app", "version": "1", "requires": ["nvidia-cudnn-cu13"]}
    made = planned(
        machine("a", stays, "nvidia-cudnn-cu13 9.12.0"),
        machine("free"),
        cuda="12",
        conflicts=True,
    )

    assert groups(made) == [("1.26.0", ["a", "free"])]


def test_the_folder_of_wheels_that_somebody_uses_undeclared_is_not_taken() -> None:
    """A distribution named for a CUDA, which requires no wheel of it."""
    made = planned(
        machine("a", "cudf-cu13 26.2", "nvidia-cudnn-cu13 9.12.0"),
        machine("same gpu", "cudf-cu13 26.2", "nvidia-cudnn-cu13 9.12.0", python="3.12.1"),
        machine("free"),
        cuda="12",
    )

    assert groups(made) == [("1.26.0", ["free"])]
    assert [[why.code for why in reasons] for _, reasons in made.impossible] == [
        ["folder-used"],
        ["folder-used"],
    ]
