"""Names of machines and groups, and what several machines have in common."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts.model import Driver, Gpu
from ortgpu_fix.guests.machines.common_facts import common_facts, oldest_libc
from ortgpu_fix.guests.machines.facts_files import machine_names
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.lock.groups import FleetMachine, group_names
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()


def here(*packages: Any, libc: str | None = "glibc 2.35", **changes: Any) -> Situation:
    facts = synthetic.facts(*packages)
    platform = facts.platform._replace(libc=libc)
    return situation_of(facts._replace(platform=platform, **changes), PlanOptions(), MATRIX)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        ([], []),
        (["a"], ["a"]),
        (["x/a", "x/b"], ["a", "b"]),
        (["x/a", "y/a"], ["x/a", "y/a"]),
        (["1/x/a", "2/x/a", "3/b"], ["1/x/a", "2/x/a", "3/b"]),
        (["a", "x/a"], ["a", "x/a"]),
        (["0/x/a", "0/y/a", "0/y/b"], ["x/a", "y/a", "y/b"]),
    ],
)
def test_a_machine_is_called_by_as_little_of_its_path_as_tells_it_apart(
    paths: list[str], names: list[str]
) -> None:
    assert machine_names([path.split("/") for path in paths]) == tuple(names)


OLD = {"name": "old-app", "version": "1", "requires": ["onnxruntime<1.24"]}
NEW = {"name": "app", "version": "1", "requires": ["onnxruntime>=1.26"]}
CI: dict[str, Any] = {"driver": None, "gpus": ()}


@pytest.mark.parametrize(
    ("machines", "with_cpu", "complete", "names"),
    [
        ([], False, False, ()),
        ([((), {})], False, True, ("cuda12",)),
        ([((), {}), ((), CI)], False, False, ("cuda12",)),
        ([((), {}), ((), CI)], True, True, ("cuda12", "cpu")),
        ([((), CI)], True, False, ()),  # no release that a group has
        ([((), {}), ((), {"driver": "10.1"})], False, False, ("cuda12",)),
        ([((), {}), ((), {"driver": "10.1"}), ((), CI)], True, False, ("cuda12", "cpu")),
        ([((OLD,), {}), ((NEW,), {}), ((), CI)], True, True, ("1.26.0", "1.23.0", "cpu")),
        ([((OLD,), {"driver": "11.7"}), ((NEW,), {})], False, True, ("cuda12", "cuda11")),
    ],
)
def test_a_plan_is_complete_where_every_machine_is_in_a_group(
    machines: list[tuple[tuple[Any, ...], dict[str, Any]]],
    names: tuple[str, ...],
    *,
    with_cpu: bool,
    complete: bool,
) -> None:
    rows = [
        FleetMachine(name=f"m{at}", facts=synthetic.facts(*packages, **changes))
        for at, (packages, changes) in enumerate(machines)
    ]

    made = plan_fleet(rows, PlanOptions(), MATRIX, with_cpu=with_cpu)

    assert made.complete is complete
    assert group_names(made.groups) == names
    assert {target.python for group in made.groups for target in group.targets} <= {"3.11"}


@pytest.mark.parametrize(
    ("libcs", "oldest"),
    [
        ([None], None),
        ([None, "glibc 2.35"], "glibc 2.35"),
        (["glibc 2.35", "glibc 2.9", "glibc 2.17"], "glibc 2.9"),
        (["glibc 2.35", "musl 1.2"], "musl 1.2"),
    ],
)
def test_the_oldest_libc_is_that_of_all(libcs: list[str | None], oldest: str | None) -> None:
    assert oldest_libc([here(libc=libc) for libc in libcs]) == oldest


@pytest.mark.parametrize(
    ("drivers", "at"),
    [
        ([None, None], None),
        ([None, Driver(cuda="12.2")], 1),
        ([Driver(cuda="12.10"), Driver(cuda="12.4")], 1),
        ([Driver(cuda="12.4", version="550.9"), Driver(cuda="12.4", version="550.10")], 0),
        ([Driver(cuda="12.4", version="550.9"), Driver(cuda="12.4")], 1),
        ([Driver(cuda="12.4"), Driver(version="1.0")], 1),  # whose CUDA nobody knows
        ([Driver(cuda="12.4", error="x"), Driver(cuda="12.4")], 0),  # either
    ],
)
def test_the_oldest_driver_is_that_of_all(drivers: list[Driver | None], at: int | None) -> None:
    found = common_facts([here(driver=driver) for driver in drivers])

    assert found.driver == (None if at is None else drivers[at])


def test_every_kind_of_gpu_once_by_what_it_can_do() -> None:
    rows: list[tuple[Gpu, ...] | None] = [
        (Gpu(compute_capability="12.0", name="B"), Gpu(name="Odd")),
        None,
        (Gpu(compute_capability="9.0"), Gpu(compute_capability="12.0", name="B")),
        (Gpu(compute_capability="12.0", name="A"),),
    ]

    assert common_facts([here(gpus=row) for row in rows]).gpus == (
        Gpu(name="Odd"),
        Gpu(compute_capability="9.0"),
        Gpu(compute_capability="12.0", name="A"),
        Gpu(compute_capability="12.0", name="B"),
    )
    assert common_facts([here(gpus=None)] * 2).gpus is None
    assert common_facts([here(gpus=()), here(gpus=None)]).gpus == ()
