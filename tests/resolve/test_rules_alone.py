"""Each rule by itself: what it asks of a release, and that it says nothing of other platforms."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.model import Build, LibraryNeed
from ortgpu_fix.matrix.parse import parse
from ortgpu_fix.plan.reasons import Named
from ortgpu_fix.resolve import environment_rules, machine_rules, rules
from ortgpu_fix.resolve.candidate import Candidate, make_candidate
from ortgpu_fix.resolve.consumers import holders
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.release_checks import (
    glibc_suffices,
    oldest_that_serves,
    too_old_driver,
    too_old_glibc,
)
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.resolve.situation import Situation, situation_of

MATRIX = synthetic.matrix()
APP = {"name": "app", "version": "1", "requires": ["onnxruntime<1.20", "numpy<1"]}


def here(*packages: Any, platform: Any = None, **more: Any) -> Situation:
    options = more.pop("options", PlanOptions())
    document = synthetic.document(*packages, **more)
    document["platform"] |= platform or {}
    return situation_of(facts_json.from_json(document), options, MATRIX)


def build(version: str = "1.26.0", platform: str = "linux_x86_64") -> Build:
    [row] = [row for row in MATRIX.builds if row.version == version and row.platform == platform]
    return row


def candidate(at: Situation, version: str = "1.26.0", platform: str = "linux_x86_64") -> Candidate:
    return make_candidate(build(version, platform), at)


def said(rule: rules.Rule, at: Situation, *which: str) -> list[tuple[str, dict[str, str]]]:
    return [(why.code, values_of(why)) for why in rule(candidate(at, *which), at)]


def test_a_gpu_is_asked_for_that_is_not_ignored() -> None:
    ignored = PlanOptions(ignored_gpus=frozenset({"8.0"}))

    assert said(machine_rules.check_gpu_present, here()) == []
    assert said(machine_rules.check_gpu_present, here(gpus=None)) == []
    assert said(machine_rules.check_gpu_present, here(gpus=())) == [("no-gpu", {})]
    assert said(machine_rules.check_gpu_present, here(options=ignored)) == [("no-gpu-left", {})]


def test_a_driver_is_asked_for_that_runs_the_cuda() -> None:
    assert said(machine_rules.check_driver, here()) == []
    assert said(machine_rules.check_driver, here(driver=None)) == [("no-driver", {})]
    unheard_of = too_old_driver("14.0", here())
    assert unheard_of is not None
    assert values_of(unheard_of) == {"cuda": "14", "floor": "", "driver_cuda": "12.2"}
    too_old = {"cuda": "13", "floor": "580.65.06", "driver_cuda": "12.2"}
    assert said(machine_rules.check_driver, here(), "1.31.0") == [("driver-too-old", too_old)]


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
    assert said(machine_rules.check_platform, here(platform=platform)) == expected


def test_of_a_release_for_other_systems_that_is_all_that_is_said() -> None:
    machine: dict[str, Any] = {"platform": {"machine": "aarch64"}, "python": "3.13.1"}
    at = here("torch 2.9.0+cu118", **machine)

    assert [why.code for why in rules.reasons_against(candidate(at), at)] == ["no-wheel-platform"]


def test_a_glibc_is_old_where_it_is_known_to_be() -> None:
    for libc, suffices in (
        ("glibc 2.28", True),
        ("glibc 2.27", False),
        ("musl 1.2", False),
        ("musl 9", False),
    ):
        assert glibc_suffices(here(platform={"libc": libc}), "2.28") is suffices
    assert glibc_suffices(here(platform={"libc": None}), "2.28")
    assert glibc_suffices(here(platform={"libc": "musl 1.2"}), None)
    assert too_old_glibc(None, here(platform={"libc": "glibc 2.0"})) is None


@pytest.mark.parametrize(
    ("distribution", "library", "since", "oldest"),
    [
        ("nvidia-cublas-cu12", "libcublas.so.12", "12.2.0", "12.2.0"),
        ("nvidia-cublas-cu12", "libcublas.so.12", "12.0.1", None),  # the oldest known wheel has it
        ("nvidia-cublas-cu12", "libcublas.so.12", None, None),
        ("nvidia-cublas-cu12", "libother.so.12", "12.2.0", None),
        ("nvidia-cudnn-cu12", "libcudnn.so.9", "9.1.0", None),  # 8.9.7 does not hold it at all
        ("nvidia-cudnn-cu12", "libcudnn.so.9", "9.1.1", "9.1.1"),
        ("nvidia-unknown", "libcublas.so.12", "12.2.0", None),
        (None, "libcuda.so.1", "12.2.0", None),
    ],
)
def test_how_old_a_library_may_be(
    distribution: str | None, library: str, since: str | None, oldest: str | None
) -> None:
    need = LibraryNeed(library=library, how="links", distribution=distribution, since=since)

    assert oldest_that_serves(need, here()) == oldest
    elsewhere = here(platform={"machine": "aarch64"})
    assert oldest_that_serves(need, elsewhere) is None


def test_a_wheel_for_the_python_is_asked_for() -> None:
    assert said(machine_rules.check_python, here()) == []
    assert said(machine_rules.check_python, here(python="3.13.0")) == [
        ("no-wheel-python", {"python": "cp313"})
    ]
    arm = here(python="3.13.0"), "1.31.0", "linux_aarch64"
    assert said(machine_rules.check_python, *arm) == []


def test_who_uses_another_cuda_with_the_same_cudnn_is_in_the_way() -> None:
    at = here("transformer 4.2", "nvidia-cublas-cu12 12.8.4", driver="13.0")
    [(code, values)] = said(environment_rules.check_consumers, at, "1.31.0")

    assert code == "consumer-other-cuda"
    assert values == {"by": "transformer 4.2", "cuda": "12", "cudnn": "9", "needs": "13"}
    assert said(environment_rules.check_consumers, at) == []
    assert said(environment_rules.check_consumers, at, "1.31.0", "linux_aarch64") == []
    made = candidate(at, "1.31.0")
    made = made._replace(build=made.build._replace(cudnn=""))  # as a plugin has it
    assert list(environment_rules.check_consumers(made, at)) == []
    allowed = here(
        *("transformer 4.2", "nvidia-cublas-cu12 12.8.4"), options=PlanOptions(conflicts=True)
    )
    assert said(environment_rules.check_consumers, allowed, "1.31.0") == []


def test_what_packages_allow_is_asked_of_the_release_and_of_what_it_requires() -> None:
    at = here(APP, "flatbuffers 25.0", {"name": "b", "version": "2", "requires": ["flatbuffers"]})

    assert said(environment_rules.check_requirements, at) == [
        ("demand-conflict", {"by": "app 1", "requires": "onnxruntime<1.20"}),
        (
            "requirement-conflict",
            {"needs": "numpy>=1.21.6", "by": "app 1", "requires": "numpy<1"},
        ),
    ]
    assert [
        code
        for code, _ in said(environment_rules.check_requirements, at, "1.31.0", "linux_aarch64")
    ] == ["demand-conflict"]
    assert [code for code, _ in said(environment_rules.check_requirements, at, "1.18.0")] == [
        "requirement-conflict"
    ]


def test_what_is_installed_and_serves_is_nobody_s_conflict() -> None:
    """`app` is broken already: that its protobuf is too new for it is not of this release."""
    app = {"name": "app", "version": "1", "requires": ["protobuf<4"]}

    assert said(environment_rules.check_requirements, here(app, "protobuf 5.0"), "1.31.0") == []
    assert [
        code for code, _ in said(environment_rules.check_requirements, here(app), "1.31.0")
    ] == ["requirement-conflict"]


def test_a_release_is_usable_with_the_wheels_of_a_newer_toolkit() -> None:
    tables = synthetic.tables()
    [cublas] = [
        row for row in tables["nvidia"]["distribution"] if row["name"] == "nvidia-cublas-cu12"
    ]
    cublas["releases"] = [row for row in cublas["releases"] if row["version"] != "12.8.4"]
    matrix = parse(tables, "", {})

    assert rules.is_usable(build(), situation_of(synthetic.facts(), PlanOptions(), matrix))


def test_who_allows_it_is_not_named_beside_who_does_not() -> None:
    fits = {"name": "fits", "version": "1", "requires": ["numpy>=1.22"]}
    found = said(environment_rules.check_requirements, here(APP, fits), "1.18.0")

    assert [values["by"] for _, values in found] == ["app 1"]


def test_two_who_allow_nothing_together_are_both_named() -> None:
    rows = [
        {"name": name, "version": "1", "requires": [f"flatbuffers{limit}"]}
        for name, limit in (("old", "<2"), ("new", ">3"))
    ]

    found = said(environment_rules.check_requirements, here(*rows))
    assert [(code, values["by"]) for code, values in found] == [
        *(("requirement-conflict", "old 1"), ("requirement-conflict", "new 1")),
    ]
    assert said(environment_rules.check_requirements, here(rows[0])) == []


@pytest.mark.parametrize(
    ("wanted", "conflict"),
    [("==25.0rc1", False), (">=25.0rc1,<25.0rc2", False), (">=25.0rc2,<25.0rc1", True)],
)
def test_a_release_before_its_time_is_one_that_can_be_required(
    wanted: str, *, conflict: bool
) -> None:
    app = {"name": "app", "version": "1", "requires": [f"flatbuffers{wanted}"]}

    assert bool(said(environment_rules.check_requirements, here(app))) is conflict


def test_who_uses_a_wheel_and_declares_nothing_holds_those_of_its_cuda() -> None:
    pin = {"name": "pins", "version": "1", "requires": ["nvidia-cudnn-cu12"]}
    users = ("sparse-cuda12x 1.0", "transformer 4.6", "transformers-cuda13 1.0", pin)
    at = here(*users, "nvidia-cudnn-cu12 9.28.0")

    assert [row.cuda for row in at.consumers] == ["12", "12", "12", "13"]
    assert holders(MATRIX.distributions["nvidia-cudnn-cu12"], at.consumers) == (
        Named("sparse-cuda12x", "1.0"),
        Named("transformer", "4.6"),
    )


def test_wishes_are_asked_of_the_release() -> None:
    wish = here(options=PlanOptions(onnxruntime="<1.20", cuda="11"))

    assert said(environment_rules.check_options, wish) == [
        ("not-wished", {"wish": "--ort <1.20"}),
        ("not-wished", {"wish": "--cuda 11"}),
    ]
    assert said(environment_rules.check_options, wish, "1.18.0") == []
    assert said(environment_rules.check_options, here()) == []


def test_why_a_release_works_names_the_driver_the_gpus_and_who_pins_what() -> None:
    torch = {"name": "app", "version": "3", "requires": ["nvidia-cudnn-cu12==9.1.0"]}
    at = here(torch, "transformer 4.2", gpus=("8.0", "12.0"), driver="12.8")
    found = [(why.code, values_of(why)) for why in rules.reasons_for(candidate(at), at)]

    assert found == [
        ("why-driver", {"cuda": "12.8", "driver_cuda": "12.8"}),
        ("why-sass", {"gpu": "8.0"}),
        ("why-ptx", {"gpu": "12.0"}),
        ("why-pinned", {"distribution": "nvidia-cudnn-cu12 9.1.0", "by": "app 3"}),
        ("why-consumers", {"by": "app 3, transformer 4.2", "cuda": "12"}),
    ]


def test_nobody_is_named_where_nobody_decides() -> None:
    reasons = rules.reasons_for(candidate(here()), here())

    assert [why.code for why in reasons] == ["why-driver", "why-sass"]


def test_what_works_is_not_among_what_is_rejected() -> None:
    made = resolve(synthetic.facts(), PlanOptions(), MATRIX)

    assert [(row.package, row.version) for row in made.rejected] == [("onnxruntime-gpu", "1.31.0")]


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
