"""A fleet's plan in words, and as the document for programs."""

from __future__ import annotations

import json
from typing import Any

from documents import check

import synthetic
from ortgpu_fix.guests.machines.plan_report import fleet_json, fleet_sections
from ortgpu_fix.guests.machines.planner import plan_fleet
from ortgpu_fix.lock.groups import FleetMachine
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.messages.sections import plain
from ortgpu_fix.resolve.options import PlanOptions

MATRIX = synthetic.matrix()
OLD: dict[str, Any] = {"driver": "11.7", "gpus": ("7.0",)}
NEW: dict[str, Any] = {"driver": "13.0", "python": "3.13.0", "gpus": ("12.0",)}
CI: dict[str, Any] = {"driver": None, "gpus": ()}
ANCIENT: dict[str, Any] = {"driver": "10.1"}
FLEETS: dict[str, dict[str, dict[str, Any]]] = {
    "one": {"a": {}, "b": {"driver": "13.0"}},
    "split": {"old": OLD, "new": NEW},
    "rest": {"a": {}, "ci": CI, "ancient": ANCIENT},
    "nothing": {"ci": CI},
}


def made(fleet: str, *, with_cpu: bool = False) -> Any:
    machines = [
        FleetMachine(name=name, facts=synthetic.facts(**changes))
        for name, changes in FLEETS[fleet].items()
    ]
    return plan_fleet(machines, PlanOptions(), MATRIX, with_cpu=with_cpu)


def words(
    fleet: str, language: Any = "en", *, with_cpu: bool = False, verbose: bool = False
) -> str:
    texts = load_texts(language)
    plan = made(fleet, with_cpu=with_cpu)
    return plain(fleet_sections(plan, texts, verbose=verbose, command="do"))


def document(fleet: str, *, with_cpu: bool = False) -> Any:
    found = json.loads(json.dumps(fleet_json(made(fleet, with_cpu=with_cpu), load_texts("en"))))
    check(found)
    return found


def test_one_set_for_all_to_the_letter() -> None:
    assert words("one") == (
        """\
The same packages for all machines (2): onnxruntime-gpu 1.26.0, CUDA 12
  linux_x86_64, cp311  a, b
  nvidia-cublas-cu12   12.8.4
  nvidia-cudnn-cu12    9.28.0
  onnxruntime-gpu      1.26.0

Why nothing newer
  1.31.0  not on a: needs driver 580.65.06 or newer for CUDA 13; \
the driver supports up to CUDA 12.2

Write one lock for all of them:
do"""
    )


def test_a_split_says_what_keeps_the_groups_apart() -> None:
    assert words("split") == (
        """\
Group cuda13, machines: 1. onnxruntime-gpu 1.31.0, CUDA 13
  linux_x86_64, cp313  new

Group cuda11, machines: 1. onnxruntime-gpu 1.18.0, CUDA 11
  linux_x86_64, cp311  old

Why the same packages do not work on all machines
  1.31.0  not on old: needs driver 580.65.06 or newer for CUDA 13; \
the driver supports up to CUDA 11.7
  1.18.0  not on new: has no wheel for cp313
  …       older versions: 2; `--verbose` lists why

Write a lock for each group (2), next to the given file:
do"""
    )


def test_more_is_told_of_a_split_where_more_is_asked_for() -> None:
    """The packages of each group, every release, and all that speaks against it."""
    said = words("split", verbose=True)

    assert "old\n  nvidia-cublas-cu11   11.11.3\n  nvidia-cudnn-cu11    8.9.6\n" in said
    assert (
        "CUDA 11.7; does not support compute capability 7.0 "
        "(only 7.5, 8.0, 8.6, 8.9, 9.0, 12.0a)\n"
        "  1.26.0  not on new: has no wheel for cp313\n"
        "          not on old: needs driver 525.60.13 or newer for CUDA 12"
    ) in said
    assert "  1.23.0  not on new" in said
    assert "--verbose" not in said


def test_machines_that_are_left_out_are_named() -> None:
    said = words("rest")

    assert said.startswith("Group cuda12, machines: 1. onnxruntime-gpu 1.26.0, CUDA 12\n")
    assert "Without a GPU, or without a driver for it\n  ci\n  With `--with-cpu` they get" in said
    assert "Nothing works on\n  ancient  needs driver 450.80.02 or newer for CUDA 11" in said
    assert said.endswith("Some machines have no plan: 2")
    found = document("rest")
    [impossible] = found["impossible"]
    assert impossible["machine"] == "ancient"
    assert [row["code"] for row in impossible["reasons"]] == ["driver-too-old"]
    assert found["without_gpu"] == ["ci"]


def test_the_cpu_build_is_a_group_of_its_own() -> None:
    said = words("rest", with_cpu=True)

    assert "Group cpu, machines without a GPU: 1. onnxruntime 1.26.0\n" in said
    assert "--with-cpu" not in said
    assert said.endswith("Some machines have no plan: 1")


def test_a_fleet_of_which_nothing_is_possible() -> None:
    assert (
        words("nothing")
        == "Without a GPU, or without a driver for it\n  ci\n\n"
        + words("nothing").rpartition("\n")[2]
    )
    assert document("nothing")["verdict"] == "impossible"


def test_many_machines_are_counted_instead_of_listed() -> None:
    machines = [FleetMachine(name=f"m{at}", facts=synthetic.facts()) for at in range(9)]
    made = plan_fleet(machines, PlanOptions(), MATRIX)

    short = plain(fleet_sections(made, load_texts("en"), verbose=False, command="do"))
    long = plain(fleet_sections(made, load_texts("en"), verbose=True, command="do"))

    chinese = plain(fleet_sections(made, load_texts("zh"), verbose=False, command="do"))

    assert "m0, m1, m2 and 6 more" in short
    assert "m0、m1、m2 及另外 6 台" in chinese
    assert "m7, m8" in long


def test_one_group_on_one_target_is_still_a_plan() -> None:
    plan = document("one")

    assert plan["verdict"] == "fixable"
    assert plan["selection"]["cuda"] == "12"
    assert {row["name"] for row in plan["install"]} == {
        "onnxruntime-gpu",
        "nvidia-cublas-cu12",
        "nvidia-cudnn-cu12",
    }
    assert plan["groups"][0]["targets"][0]["install"] == plan["install"]
    assert plan["groups"][0]["machines"] == ["a", "b"]
    [newer] = plan["rejected"]
    assert [why["code"] for why in newer["reasons"]] == ["driver-too-old"]
    assert newer["reasons"][0]["machines"] == ["a"]
