"""One plan for many machines, and the smallest split where there is none."""

from __future__ import annotations

from typing import Any

import synthetic
from ortgpu_fix.fleet import FleetPlan, Machine, plan_fleet
from ortgpu_fix.situation import Wishes

MATRIX = synthetic.matrix()


def machine(name: str, *packages: Any, **changes: Any) -> Machine:
    return Machine(name=name, facts=synthetic.facts(*packages, **changes))


def planned(*machines: Machine, with_cpu: bool = False, **wishes: Any) -> FleetPlan:
    return plan_fleet(machines, Wishes(**wishes), MATRIX, with_cpu=with_cpu)


def groups(made: FleetPlan) -> list[tuple[str, list[str]]]:
    return [(group.version, [each.name for each in group.machines]) for group in made.groups]


def versions(made: FleetPlan, group: int = 0, target: int = 0) -> dict[str, str]:
    plan = made.groups[group].targets[target].plan
    return {wheel.name: wheel.version for wheel in plan.selection}


def test_the_oldest_driver_decides_for_all() -> None:
    made = planned(machine("new", driver="13.0"), machine("old", driver="12.2"))

    assert groups(made) == [("1.26.0", ["new", "old"])]
    assert made.complete
    assert [row.version for row in made.excluded] == ["1.31.0"]
    assert [each.name for each in made.excluded[0].by[0].machines] == ["old"]


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


def test_every_gpu_of_the_fleet_is_served_by_the_same_wheels() -> None:
    made = planned(machine("volta", gpus=("7.0",)), machine("ampere", gpus=("8.0",)))

    assert versions(made)["nvidia-cudnn-cu12"] == "9.10.2"
    assert [gpu.compute_capability for gpu in made.groups[0].targets[0].facts.gpus or ()] == [
        "7.0",
        "8.0",
    ]


def test_nothing_works_on_a_machine_and_it_says_why() -> None:
    made = planned(machine("a"), machine("ancient", driver="10.1"))

    assert groups(made) == [("1.26.0", ["a"])]
    assert [(each.name, [why.code for why in reasons]) for each, reasons in made.impossible] == [
        ("ancient", ["driver-too-old"])
    ]
    assert not made.complete


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
