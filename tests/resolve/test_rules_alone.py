"""Each rule by itself: what it asks of a release, and that it says nothing of other platforms."""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import Build
from ortgpu_fix.resolve import rules
from ortgpu_fix.resolve.candidate import Candidate, make_candidate
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.release_checks import glibc_suffices, too_old_glibc
from ortgpu_fix.resolve.situation import Situation, situation

MATRIX = synthetic.matrix()
APP = {"name": "app", "version": "1", "requires": ["onnxruntime<1.20", "numpy<1"]}


def here(*packages: Any, platform: Any = None, **more: Any) -> Situation:
    options = more.pop("options", PlanOptions())
    document = synthetic.document(*packages, **more)
    document["platform"] |= platform or {}
    return situation(facts_json.from_json(document), options, MATRIX)


def build(version: str = "1.26.0", platform: str = "linux_x86_64") -> Build:
    [row] = [row for row in MATRIX.builds if row.version == version and row.platform == platform]
    return row


def candidate(at: Situation, version: str = "1.26.0", platform: str = "linux_x86_64") -> Candidate:
    return make_candidate(build(version, platform), at)


def said(rule: rules.Rule, at: Situation, *which: str) -> list[tuple[str, dict[str, str]]]:
    return [(why.code, dict(why.values)) for why in rule(candidate(at, *which), at)]


def test_a_gpu_is_asked_for_that_is_not_ignored() -> None:
    ignored = PlanOptions(ignored_gpus=frozenset({"8.0"}))

    assert said(rules.check_gpu_present, here()) == []
    assert said(rules.check_gpu_present, here(gpus=None)) == []
    assert said(rules.check_gpu_present, here(gpus=())) == [("no-gpu", {})]
    assert said(rules.check_gpu_present, here(options=ignored)) == [("no-gpu-left", {})]


def test_a_driver_is_asked_for_that_runs_the_cuda() -> None:
    assert said(rules.check_driver, here()) == []
    assert said(rules.check_driver, here(driver=None)) == [("no-driver", {})]
    too_old = {"cuda": "13", "floor": "580.65.06", "driver_cuda": "12.2"}
    assert said(rules.check_driver, here(), "1.31.0") == [("driver-too-old", too_old)]


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ({}, []),
        ({"jetson": "R36"}, [("jetson", {})]),
        ({"libc": "musl 1.2"}, [("musl", {"libc": "musl 1.2"})]),
        ({"libc": None}, []),
        (
            {"libc": "glibc 2.17"},
            [("glibc-too-old", {"glibc": "2.28", "libc": "glibc 2.17"})],
        ),
        ({"machine": "aarch64"}, [("no-wheel-platform", {"platform": "linux_aarch64"})]),
    ],
)
def test_a_system_is_asked_for_that_such_wheels_run_on(platform: Any, expected: object) -> None:
    assert said(rules.check_platform, here(platform=platform)) == expected


def test_a_glibc_is_old_where_it_is_known_to_be() -> None:
    for libc, suffices in (("glibc 2.28", True), ("glibc 2.27", False), ("musl 1.2", False)):
        assert glibc_suffices(here(platform={"libc": libc}), "2.28") is suffices
    assert glibc_suffices(here(platform={"libc": None}), "2.28")
    assert glibc_suffices(here(platform={"libc": "musl 1.2"}), None)
    assert too_old_glibc(None, here(platform={"libc": "glibc 2.0"})) is None


def test_a_wheel_for_the_python_is_asked_for() -> None:
    assert said(rules.check_python, here()) == []
    assert said(rules.check_python, here(python="3.13.0")) == [
        ("no-wheel-python", {"python": "cp313"})
    ]
    arm = here(python="3.13.0"), "1.31.0", "linux_aarch64"
    assert said(rules.check_python, *arm) == []


def test_who_uses_another_cuda_with_the_same_cudnn_is_in_the_way() -> None:
    at = here("transformer 4.2", "nvidia-cublas-cu12 12.8.4", driver="13.0")
    [(code, values)] = said(rules.check_consumers, at, "1.31.0")

    assert code == "consumer-other-cuda"
    assert values == {"by": "transformer 4.2", "cuda": "12", "cudnn": "9", "needs": "13"}
    assert said(rules.check_consumers, at) == []
    assert said(rules.check_consumers, at, "1.31.0", "linux_aarch64") == []
    allowed = here(
        *("transformer 4.2", "nvidia-cublas-cu12 12.8.4"), options=PlanOptions(conflicts=True)
    )
    assert said(rules.check_consumers, allowed, "1.31.0") == []


def test_what_packages_allow_is_asked_of_the_release_and_of_what_it_requires() -> None:
    at = here(APP, "flatbuffers 25.0", {"name": "b", "version": "2", "requires": ["flatbuffers"]})

    assert said(rules.check_requirements, at) == [
        ("demand-conflict", {"by": "app 1", "requires": "onnxruntime<1.20"}),
        (
            "requirement-conflict",
            {"needs": "numpy>=1.21.6", "by": "app 1", "requires": "numpy<1"},
        ),
    ]
    assert [code for code, _ in said(rules.check_requirements, at, "1.31.0", "linux_aarch64")] == [
        "demand-conflict"
    ]
    assert [code for code, _ in said(rules.check_requirements, at, "1.18.0")] == [
        "requirement-conflict"
    ]


def test_two_who_allow_nothing_together_are_both_named() -> None:
    rows = [
        {"name": name, "version": "1", "requires": [f"flatbuffers{limit}"]}
        for name, limit in (("old", "<2"), ("new", ">3"))
    ]

    found = said(rules.check_requirements, here(*rows))
    assert [(code, values["by"]) for code, values in found] == [
        *(("requirement-conflict", "old 1"), ("requirement-conflict", "new 1")),
    ]
    assert said(rules.check_requirements, here(rows[0])) == []


def test_wishes_are_asked_of_the_release() -> None:
    wish = here(options=PlanOptions(onnxruntime="<1.20", cuda="11"))

    assert said(rules.check_options, wish) == [
        ("not-wished", {"wish": "--ort <1.20"}),
        ("not-wished", {"wish": "--cuda 11"}),
    ]
    assert said(rules.check_options, wish, "1.18.0") == []
    assert said(rules.check_options, here()) == []


def test_why_a_release_works_names_the_driver_the_gpus_and_who_pins_what() -> None:
    torch = {"name": "app", "version": "3", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    at = here(torch, "transformer 4.2", gpus=("8.0", "12.0"), driver="12.8")
    found = [(why.code, dict(why.values)) for why in rules.reasons_for(candidate(at), at)]

    assert found == [
        ("why-driver", {"cuda": "12.8", "driver_cuda": "12.8"}),
        ("why-sass", {"gpu": "8.0"}),
        ("why-ptx", {"gpu": "12.0"}),
        ("why-pinned", {"distribution": "nvidia-cudnn-cu12 9.1.0", "by": "app 3"}),
        ("why-consumers", {"by": "app 3, transformer 4.2", "cuda": "12"}),
    ]


@pytest.mark.parametrize(
    ("version", "machine", "usable"),
    [
        ("1.26.0", {}, True),
        ("1.31.0", {}, False),
        ("1.31.0", {"driver": "13.0"}, True),
        ("1.26.0", {"gpus": ()}, False),
        ("1.26.0", {"options": PlanOptions(cuda="11")}, False),
    ],
)
def test_a_release_is_usable_where_no_rule_rejects_it(
    version: str, machine: dict[str, Any], *, usable: bool
) -> None:
    at = here(**machine)

    assert rules.is_usable(build(version), at) is usable
    assert bool(rules.reasons_against(candidate(at, version), at)) is not usable
