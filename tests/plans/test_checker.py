"""Plans for random machines on the real matrix, judged by a checker that knows no resolver."""

from __future__ import annotations

import copy
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from checker import check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from random_machines import (
    BRANCHES,
    CUDA,
    ORDINARY,
    TABLES,
    TORCH,
    Document,
    chosen,
    documents,
    is_no_worse,
    newest,
    plan,
    says_wrongly_that_nothing_works,
)

from ortgpu_fix.resolve.options import PlanOptions

many = settings(max_examples=40, suppress_health_check=list(HealthCheck))
some = settings(max_examples=12, suppress_health_check=list(HealthCheck))


@given(documents(), st.sampled_from([{}, {"latest": True}, {"onnxruntime": "<1.27"}]))
@some
def test_every_plan_keeps_the_contract(document: Document, options: Document) -> None:
    assert check(document, plan(document, PlanOptions(**options)), TABLES, options) == []


def after(document: Document, made: Document) -> Document:
    """Return the facts once `made` is done: what is picked later is picked as pip would."""
    there = {row["name"]: row for row in document["packages"]}
    for name in made["uninstall"]:
        there.pop(name)
    for row in (*made["install"], *made["companions"]):
        there[row["name"]] = {"name": row["name"], "version": row["version"]}
    if "onnxruntime" in there:
        there["onnxruntime"]["provided"] = True
    for line in made["requires"]:
        wanted = Requirement(line)
        known = [*ORDINARY.get(wanted.name, []), "1.26.4", "99.0"]
        fitting = [text for text in known if text[0].isdigit() and text in wanted.specifier]
        there[wanted.name] = {"name": wanted.name, "version": fitting[-1]}
    return {**document, "packages": list(there.values())}


@given(documents())
@many
@pytest.mark.slow
def test_where_a_plan_says_that_nothing_works_nothing_does(document: Document) -> None:
    assert not says_wrongly_that_nothing_works(document)


@given(documents())
@some
def test_doing_the_plan_leaves_it_healthy(document: Document) -> None:
    made = plan(document)
    if made["verdict"] == "impossible":
        return
    done = after(document, made)
    again = plan(done)

    assert check(done, again, TABLES) == []
    assert (again["verdict"], chosen(again)) == ("healthy", chosen(made))


@given(documents())
@some
def test_a_newer_driver_never_makes_the_answer_worse(document: Document) -> None:
    newer = CUDA[1::7]
    answers = [newest({**document, "driver": {"cuda": cuda}}) for cuda in newer]

    assert answers == sorted(answers)


DRIVERS = [*(f"{branch}.10" for branch in BRANCHES), "650.10", "999.10"]
"""The first driver of each branch, and two that no table has."""
PAIRS = st.lists(st.sampled_from(range(len(DRIVERS))), min_size=2, max_size=2).map(sorted)


@given(documents(), PAIRS)
@some
def test_a_newer_release_is_worse_only_where_it_drops_the_gpu(
    document: Document, ages: list[int]
) -> None:
    older, newer = (DRIVERS[age] for age in ages)

    assert is_no_worse(document, older, newer)


@given(documents(), st.randoms(use_true_random=False))
@some
def test_the_same_facts_in_any_order_give_the_same_bytes(document: Document, random: Any) -> None:
    shuffled = copy.deepcopy(document)
    random.shuffle(shuffled["packages"])
    random.shuffle(shuffled["gpus"] or [])
    shuffled = dict(reversed(shuffled.items()))

    assert json.dumps(plan(shuffled)) == json.dumps(plan(document))


# A checker that cannot fail is worthless: each of these spoils a right plan.


def whole(made: Document, name: str) -> Document:
    """Return the wheel `name` of what `made` installs."""
    return next(row for row in made["install"] if row["name"] == name)


def move(made: Document, name: str, version: str) -> None:
    """Let `made` select and install another release of `name`, its file and hash too."""
    rows = [row for row in TABLES["nvidia"]["distribution"] if row["name"] == name]
    if name == "onnxruntime-gpu":
        [build] = [
            row
            for row in TABLES["onnxruntime"]["build"]
            if (row["version"], row["platform"]) == (version, "linux_x86_64")
        ]
        [wheel] = [row for row in build["wheels"] if row["python"] == "cp311"]
    else:
        [wheel] = [
            row
            for row in rows[0]["releases"]
            if (row["version"], row["platform"]) == (version, "linux_x86_64")
        ]
    new = {key: wheel[key] for key in ("file", "size", "sha256")} | {"version": version}
    whole(made, name).update(new)
    for row in made["selection"]["packages"]:
        if row["name"] == name:
            row["version"] = version


def drop(made: Document, name: str) -> None:
    made["install"] = [row for row in made["install"] if row["name"] != name]
    packages = made["selection"]["packages"]
    made["selection"]["packages"] = [row for row in packages if row["name"] != name]


def impossible(made: Document) -> None:
    made |= {"verdict": "impossible", "selection": None}
    made |= {name: [] for name in ("uninstall", "install", "companions", "requires")}


MACHINE: Document = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
    "driver": {"version": "535.104.12", "cuda": "12.2"},
    "gpus": [{"compute_capability": "8.0"}],
    "python": {"version": "3.11.7"},
    "packages": [
        {"name": "onnxruntime", "version": "1.22.1"},
        {"name": "nvidia-cudnn-cu13", "version": "9.12.0.46"},
        {"name": "numpy", "version": "2.2.6"},
        {"name": "fastembed", "version": "0.9.1", "requires": ["onnxruntime>=1.17.0,!=1.20.0"]},
    ],
}
SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "says impossible": (impossible, "not impossible"),
    "says healthy": (lambda made: made.update(verdict="healthy"), "healthy with"),
    "an old release": (lambda made: move(made, "onnxruntime-gpu", "1.24.1"), "not the newest"),
    "too new for the driver": (lambda made: move(made, "onnxruntime-gpu", "1.31.1"), "cannot work"),
    "another hash": (
        lambda made: whole(made, "nvidia-cudnn-cu12").update(sha256="0" * 64),
        "no such wheel",
    ),
    "another size": (lambda made: whole(made, "onnxruntime-gpu").update(size=1), "no such wheel"),
    "the wheel of another Python": (
        lambda made: whole(made, "onnxruntime-gpu").update(
            file=whole(made, "onnxruntime-gpu")["file"].replace("cp311", "cp312")
        ),
        "no such wheel",
    ),
    "a library of another toolkit": (
        lambda made: move(made, "nvidia-cublas-cu12", "12.9.1.4"),
        "not those of",
    ),
    "an old cuDNN": (
        lambda made: move(made, "nvidia-cudnn-cu12", "9.10.2.21"),
        "not the newest that fits",
    ),
    "cuDNN of another major": (
        lambda made: move(made, "nvidia-cudnn-cu12", "8.9.7.29"),
        "cannot serve",
    ),
    "no cuFFT": (lambda made: drop(made, "nvidia-cufft-cu12"), "nothing brings libcufft"),
    "no nvJitLink for cuFFT": (lambda made: drop(made, "nvidia-nvjitlink-cu12"), "lacks"),
    "selected and not installed": (
        lambda made: made["install"].remove(whole(made, "nvidia-cufft-cu12")),
        "installed: False",
    ),
    "the CPU build stays": (lambda made: made["uninstall"].remove("onnxruntime"), "must"),
    "two owners of one folder": (
        lambda made: made["uninstall"].remove("nvidia-cudnn-cu13"),
        "must",
    ),
    "uninstalls a stranger": (lambda made: made["uninstall"].append("numpy"), "must"),
    "a missing requirement": (lambda made: made["requires"].remove("protobuf"), "lacks protobuf"),
    "a requirement of nobody": (lambda made: made["requires"].append("torch"), "nobody asked"),
    "another stand-in": (
        lambda made: made["companions"][1].update(version="1.20.0"),
        "the stand-in is",
    ),
    "a good release rejected": (
        lambda made: made["rejected"].append(
            {"package": "onnxruntime-gpu", "version": "1.23.2", "reasons": [{"code": "x"}]}
        ),
        "1.23.2 is rejected",
    ),
    "a bad release not rejected": (lambda made: made["rejected"].pop(0), "1.31.1 is rejected"),
    "a rejection without a reason": (
        lambda made: made["rejected"][0].update(reasons=[]),
        "without a reason",
    ),
}


@functools.cache
def right() -> str:
    made = plan(MACHINE)
    assert check(MACHINE, made, TABLES) == []
    return json.dumps(made)


@pytest.mark.parametrize("name", SPOILT)
def test_the_checker_sees_what_is_wrong(name: str) -> None:
    spoil, said = SPOILT[name]
    made = json.loads(right())
    spoil(made)

    assert [line for line in check(MACHINE, made, TABLES) if said in line]


def test_the_checker_sees_that_an_unknown_wheel_was_not_kept() -> None:
    """A cuDNN that no table has can serve as the newest that is not newer does."""
    newer = {"name": "nvidia-cudnn-cu12", "version": "9.29.0.10"}
    there = {**MACHINE, "packages": [*MACHINE["packages"], newer]}
    kept, moved = plan(there), plan(MACHINE)
    moved["uninstall"] = ["nvidia-cudnn-cu12"]

    assert check(there, kept, TABLES) == []
    assert newer["version"] in json.dumps(kept["selection"])
    assert any("9.29.0.10 can serve and is not kept" in row for row in check(there, moved, TABLES))


def test_the_checker_sees_that_an_unknown_wheel_cannot_serve() -> None:
    """What was seen of it lacks a library, so that it must go."""
    newer = {"name": "nvidia-cudnn-cu12", "version": "9.29.0.10", "libraries": ["a/libx.so.9"]}
    there = {**MACHINE, "packages": [*MACHINE["packages"], newer]}
    moved, kept = plan(there), plan({**MACHINE, "packages": [*MACHINE["packages"]]})
    drop(kept, "nvidia-cudnn-cu12")
    kept["selection"]["packages"].append({**newer, "index": "installed"})

    assert check(there, moved, TABLES) == []
    assert any("9.29.0.10 cannot serve" in row for row in check(there, kept, TABLES))


def test_the_checker_sees_that_what_works_was_not_kept() -> None:
    kept = {**MACHINE, "packages": [{"name": "onnxruntime-gpu", "version": "1.23.2"}]}
    moved = plan(kept, PlanOptions(latest=True))

    assert any("1.23.2 can work and is not kept" in line for line in check(kept, moved, TABLES))


@pytest.mark.parametrize("searched", [True, False])
def test_the_checker_sees_a_runtime_that_does_not_come(*, searched: bool) -> None:
    windows = {**MACHINE, "platform": {"system": "windows", "machine": "x86_64", "libc": None}}
    if searched:
        row = {"name": "msvcp140.dll", "version": "14.16.27012.6"}
        windows |= {"libraries": [row], "sources": {"libraries": "search"}}
    made = plan(windows)
    found = [wheel for wheel in made["install"] if wheel["name"] == "msvc-runtime"]
    assert check(windows, made, TABLES) == []
    assert len(found) == 1
    made["install"].remove(found[0])
    packages = made["selection"]["packages"]
    made["selection"]["packages"] = [row for row in packages if row["name"] != "msvc-runtime"]

    assert any("msvc-runtime is None" in line for line in check(windows, made, TABLES))


def test_the_checker_sees_code_that_no_gpu_here_runs() -> None:
    volta = {**MACHINE, "gpus": [{"compute_capability": "7.0"}]}
    made = plan(volta)
    move(made, "nvidia-cudnn-cu12", "9.28.0.42")

    assert any("has no code for ['7.0']" in line for line in check(volta, made, TABLES))


def test_a_machine_with_pins_and_odd_gpus_is_planned_in_no_time() -> None:
    """It took 14 s, most of it on releases that the driver alone rules out."""
    old = {"name": "old-app", "version": "1.0", "requires": ["onnxruntime<1.20", "protobuf<4"]}
    torch = {"name": "torch", "version": "1.13.1", "requires": TORCH["1.13.1"]}
    odd = {
        **MACHINE,
        "gpus": [{"compute_capability": "10.1"}, {"compute_capability": "3.7"}],
        "python": {"version": "3.14.1"},
        "packages": [old, torch, {"name": "protobuf", "version": "3.20.3"}],
    }
    begin = time.process_time()
    plan(odd)

    assert time.process_time() - begin < 8


BESIDE: Document = {
    **MACHINE,
    "driver": {"version": "580.95.05", "cuda": "13.0"},
    "packages": [
        {"name": "ctranslate2", "version": "4.6.2"},
        {"name": "nvidia-cudnn-cu12", "version": "9.10.2.21"},
        {"name": "nvidia-cublas-cu12", "version": "12.8.5.5"},
    ],
}


def replace_cudnn(made: Document) -> None:
    made["uninstall"] = ["nvidia-cudnn-cu12"]


BESIDE_SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "the newest for the driver": (
        lambda made: move(made, "onnxruntime-gpu", "1.31.1"),
        "1.31.1 cannot work here",
    ),
    "the cuDNN that another uses goes": (replace_cudnn, "uninstalls"),
    "says nothing of it": (lambda made: made.update(consumers=[]), "uses CUDA"),
    "says impossible": (impossible, "not impossible"),
}


CTRANSLATE2, CUPY = BESIDE["packages"][0], {"name": "cupy-cuda12x", "version": "13.6.0"}


@pytest.mark.parametrize(
    ("changes", "release"),
    [
        ({}, "1.26.0"),
        ({"packages": [CTRANSLATE2], "libraries": [{"name": "libcublas.so.12"}]}, "1.26.0"),
        ({"packages": [CTRANSLATE2]}, "1.26.0"),  # it has no CUDA here, and may get one
        ({"packages": [CUPY]}, "1.26.0"),
        ({"packages": [{"name": "something-cu13", "version": "1"}]}, "1.31.1"),
    ],
)
def test_a_plan_beside_another_user_of_cuda_is_right(changes: Document, release: str) -> None:
    document = {**BESIDE, **changes}
    made = plan(document)

    assert check(document, made, TABLES) == []
    assert chosen(made) == Version(release)


@pytest.mark.parametrize("name", BESIDE_SPOILT)
def test_the_checker_sees_what_hurts_others(name: str) -> None:
    spoil, said = BESIDE_SPOILT[name]
    made = plan(BESIDE)
    spoil(made)

    assert [line for line in check(BESIDE, made, TABLES) if said in line]
