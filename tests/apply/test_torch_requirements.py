"""What a torch requires besides the plan."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from ortgpu_fix.apply.after_change import (
    distributions_afterwards,
    incoming_torch,
    movable_distributions,
    torch_requirements,
)
from ortgpu_fix.apply.wheel_contents import read_wheel_contents
from ortgpu_fix.errors import Error
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from support.standin_wheels import as_plan, as_wheel
from support.torch_index import CUBLAS, CUDNN, REQUIRES, make_torch

TARGET = target_of(sys.executable, environ=os.environ, cwd=Path(), runner=run)
PLANNED = (("nvidia-cudnn-cu12", CUDNN), ("nvidia-cublas-cu12", CUBLAS))


def wheel(name: str, version: str) -> Wheel:
    return Wheel(name=name, version=version, index_url="pypi", file="", size=0, sha256="")


def installed(*rows: tuple[str, str]) -> tuple[Installed, ...]:
    return tuple(Installed(name=name, version=version, metadata_path="") for name, version in rows)


def plan(*rows: tuple[str, str], uninstall: Iterable[str] = ()) -> Plan:
    wheels = tuple(wheel(*row) for row in rows)
    return as_plan([], uninstall)._replace(install=wheels, selection=wheels)


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> dict[Wheel, Sequence[str] | None]:
    """What is in a torch from the index for CUDA 12.8, whose requirements are the real ones."""
    folder = tmp_path_factory.mktemp("wheels")
    paths = [make_torch(folder, "torch", "2.10.0+cu128")]
    pin = "2.10.0+cu128"
    paths.append(make_torch(folder, "torchvision", "0.25.0+cu128", torch=pin))
    return {as_wheel(path): read_wheel_contents(path).requires for path in paths}


def needed(
    made: Plan,
    torch: dict[Wheel, Sequence[str] | None],
    *there: tuple[str, str],
) -> dict[str, str]:
    coming = {one: None for one in made.install if one.name not in {row.name for row in torch}}
    then = distributions_afterwards(
        made, TARGET._replace(installed=installed(*there)), coming | torch
    )
    found = torch_requirements(made, then, [one.name for one in torch])
    return {str(need.requirement): need.by for need in found}


def test_what_neither_the_plan_nor_the_environment_has(
    torch: dict[Wheel, Sequence[str] | None],
) -> None:
    there = (("filelock", "3.20.0"), ("numpy", "2.3.0"), ("sympy", "1.12"))

    assert needed(plan(*PLANNED), torch, *there) == {
        "nvidia-nccl-cu12==2.27.5": "torch",
        "pillow!=8.3.*,>=5.3.0": "torchvision",
        "sympy>=1.13.3": "torch",
        "triton==3.6.0": "torch",
    }


def test_what_leaves_meets_nothing(torch: dict[Wheel, Sequence[str] | None]) -> None:
    made = plan(*PLANNED, uninstall=["filelock"])

    assert "filelock" in needed(made, torch, ("filelock", "3.20.0"))


def test_a_wheel_that_is_not_what_the_matrix_knows_is_refused(
    torch: dict[Wheel, Sequence[str] | None],
) -> None:
    made = plan(("nvidia-cudnn-cu12", "9.28.0.42"), PLANNED[1])
    with pytest.raises(Error) as caught:
        needed(made, torch)

    assert (caught.value.code, caught.value.values) == (
        "torch-contradicts-plan",
        {
            "by": "torch 2.10.0+cu128",
            "requires": "nvidia-cudnn-cu12==9.10.2.21",
            "planned": "nvidia-cudnn-cu12 9.28.0.42",
        },
    )


def test_a_companion_for_another_torch_is_refused(tmp_path: Path) -> None:
    path = make_torch(tmp_path, "torchvision", "0.25.0+cu128", torch="2.9.1+cu128")
    made = plan(*PLANNED, ("torch", "2.10.0+cu128"))
    torch = {as_wheel(path): read_wheel_contents(path).requires}

    with pytest.raises(Error, match="torch-contradicts-plan"):
        needed(made, {**torch}, ("numpy", "2.0"), ("pillow", "12.0"))


def test_whose_requirements_are_asked(torch: dict[Wheel, Sequence[str] | None]) -> None:
    assert incoming_torch(plan()._replace(install=tuple(torch)))
    assert not incoming_torch(plan(*PLANNED))
    for name in ("torch", "torchaudio", "torchvision"):
        assert incoming_torch(plan(*PLANNED, (name, "1")))


def test_what_others_lack_is_not_asked_for() -> None:
    there = Installed(name="app", version="1", metadata_path="", requires=("missing",))
    then = TARGET._replace(installed=(there,))

    assert torch_requirements(plan(), then, ["torch"]) == ()
    assert [need.by for need in torch_requirements(plan(), then, ["app"])] == ["app"]


def test_what_comes_takes_the_place_of_what_has_its_name() -> None:
    there = installed(("torch", "1"), ("old", "1"), ("numpy", "1"))
    coming = {wheel("torch", "2"): ["numpy"], wheel("new", "1"): None}

    then = distributions_afterwards(
        plan(uninstall=["old"]), TARGET._replace(installed=there), coming
    )

    assert [(row.key, row.version, row.requires) for row in then.installed] == [
        ("numpy", "1", ()),
        ("torch", "2", ("numpy",)),
        ("new", "1", ()),
    ]


@pytest.mark.parametrize(
    "made",
    [
        plan()._replace(selection=(wheel("nvidia-cudnn-cu12", "9.28.0.42"),)),
        plan()._replace(install=(wheel("nvidia-cudnn-cu12", "9.28.0.42"),)),
    ],
    ids=["kept", "installed"],
)
def test_what_the_plan_keeps_and_what_it_installs_is_not_for_torch_to_choose(made: Plan) -> None:
    asks = Installed(
        name="torch", version="2", metadata_path="", requires=("nvidia-cudnn-cu12==9.1.0",)
    )
    target = TARGET._replace(installed=(asks, *installed(("nvidia-cudnn-cu12", "9.28.0.42"))))

    assert movable_distributions(made, target) == frozenset()
    with pytest.raises(Error, match="torch-contradicts-plan"):
        torch_requirements(made, target, ["torch"])


def test_what_came_with_the_torch_before_may_move() -> None:
    movable = {"nvidia-nccl-cu12", "cuda-bindings", "triton", "pytorch-triton"}
    rows = (*sorted(movable), "nvidia-cudnn-cu12", "numpy", "tritonx")
    there = installed(*((name, "1") for name in rows))

    moving = movable_distributions(plan(*PLANNED), TARGET._replace(installed=there))

    assert moving >= movable
    assert not moving & {"nvidia-cudnn-cu12", "numpy"}


def test_the_recorded_requirements_are_of_both_kinds() -> None:
    """The stand-ins pin exactly, and through cuda-toolkit: both must be met in the tests."""
    lines = [line for rows in REQUIRES.values() for line in rows]

    assert any(line.startswith("nvidia-cudnn-cu12==") for line in lines)
    assert any(line.startswith("cuda-toolkit[") for line in lines)
