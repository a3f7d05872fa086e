"""Which release serves which machines: each question by itself, and asked once."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.guests.machines.shared_wheels import sharing_machines
from ortgpu_fix.guests.machines.split import FleetSolver
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()
APP = {"name": "app", "version": "1", "requires": ["onnxruntime>=1.26"]}
OLD = {"name": "old-app", "version": "1", "requires": ["onnxruntime<1.24"]}


def here(*packages: Any, libc: str | None = None, **machine: Any) -> Situation:
    facts = synthetic.facts(*packages, **machine)
    if libc is not None:
        facts = facts._replace(platform=facts.platform._replace(libc=libc))
    return situation_of(facts, PlanOptions(), MATRIX)


def solver(*situations: Situation) -> FleetSolver:
    return FleetSolver(situations, MATRIX)


def groups(found: FleetSolver) -> list[tuple[str, tuple[int, ...]]]:
    return [(share.version, share.members) for share in found.split()]


@pytest.mark.parametrize(
    ("situations", "expected"),
    [
        ([], []),
        ([here(driver="10.1")], []),
        ([here(driver="13.0"), here(driver="12.2")], [("1.26.0", (0, 1))]),
        ([here(driver="11.7"), here(APP, driver="13.0")], [("1.31.0", (1,)), ("1.18.0", (0,))]),
        ([here(OLD), here(APP), here()], [("1.26.0", (1, 2)), ("1.23.0", (0,))]),
        (
            [here(OLD, driver="11.7"), here(OLD), here(APP, driver="13.0"), here(APP)],
            [("1.26.0", (2, 3)), ("1.18.0", (0, 1))],
        ),
    ],
)
def test_the_fewest_groups_each_with_the_newest_release(
    situations: list[Situation], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert groups(solver(*situations)) == expected


# What machines that share wheels need of them.


def needs(*situations: Situation) -> list[tuple[str | None, str | None, str | None]]:
    return [
        (
            (row.gpus or (Gpu(),))[0].compute_capability,
            row.driver_cuda,
            row.facts.platform.libc,
        )
        for row in sharing_machines(situations).each
    ]


def test_of_each_gpu_the_oldest_driver_and_of_all_the_oldest_libc() -> None:
    assert needs(
        here(driver="12.8", gpus=("8.0", "9.0"), libc="glibc 2.35"),
        here(driver="12.2", gpus=("9.0",), libc="glibc 2.28"),
        here(driver="12.10", gpus=("8.0",), libc="glibc 2.39"),
    ) == [("8.0", "12.8", "glibc 2.28"), ("9.0", "12.2", "glibc 2.28")]


def test_machines_alike_are_asked_for_their_wheels_once() -> None:
    held = here("cudf-cu13 26.2", "nvidia-cudnn-cu13 9.12.0")
    found = solver(held, held)

    assert found.against("1.26.0", 0).reasons == found.against("1.26.0", 1).reasons != ()
