"""What is there after a change, and what belonged to the torch before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from ortgpu_fix.apply.after_change import (
    incoming_distributions,
    incoming_torch,
    movable_distributions,
)
from ortgpu_fix.facts.target import Installed
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils.process import run
from support.standin_wheels import as_plan
from support.torch_index import CUBLAS, CUDNN

TARGET = target_of(sys.executable, environ=os.environ, cwd=Path(), runner=run)
PLANNED = (("nvidia-cudnn-cu12", CUDNN), ("nvidia-cublas-cu12", CUBLAS))


def wheel(name: str, version: str) -> Wheel:
    return Wheel(name=name, version=version, index_url="pypi", file="", size=0, sha256="")


def installed(*rows: tuple[str, str]) -> tuple[Installed, ...]:
    return tuple(Installed(name=name, version=version, metadata_path="") for name, version in rows)


def plan(*rows: tuple[str, str], uninstall: Iterable[str] = ()) -> Plan:
    wheels = tuple(wheel(*row) for row in rows)
    return as_plan([], uninstall)._replace(install=wheels, selection=wheels)


def test_whose_requirements_are_asked() -> None:
    assert not incoming_torch(plan(*PLANNED))
    for name in ("torch", "torchaudio", "torchvision"):
        assert incoming_torch(plan(*PLANNED, (name, "1")))


def test_what_comes_has_its_requirements() -> None:
    coming = {wheel("torch", "2"): ["numpy"], wheel("new", "1"): []}

    assert [(row.key, row.version, row.requires) for row in incoming_distributions(coming)] == [
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


def test_what_came_with_the_torch_before_may_move() -> None:
    movable = {"nvidia-nccl-cu12", "cuda-bindings", "triton", "pytorch-triton"}
    rows = (*sorted(movable), "nvidia-cudnn-cu12", "numpy", "tritonx")
    there = installed(*((name, "1") for name in rows))

    moving = movable_distributions(plan(*PLANNED), TARGET._replace(installed=there))

    assert moving >= movable
    assert not moving & {"nvidia-cudnn-cu12", "numpy"}
