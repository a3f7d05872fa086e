"""Names of machines and groups, and what several machines have in common."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts.model import Gpu
from ortgpu_fix.guests.machines.common_facts import common_facts
from ortgpu_fix.guests.machines.facts_files import machine_names
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
        (["x/a", "x/b"], ["a", "b"]),
        (["x/a", "y/a"], ["x/a", "y/a"]),
        (["1/x/a", "2/x/a", "3/b"], ["1/x/a", "2/x/a", "3/b"]),
        (["a", "x/a"], ["a", "x/a"]),
    ],
)
def test_a_machine_is_called_by_as_little_of_its_path_as_tells_it_apart(
    paths: list[str], names: list[str]
) -> None:
    assert machine_names([path.split("/") for path in paths]) == tuple(names)


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
