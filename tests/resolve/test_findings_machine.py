"""What is said of a driver and of GPUs: each root cause once, with what was seen."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.facts.driver import EXPLAINED_ERRORS
from ortgpu_fix.messages.catalog import load_texts
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import Finding
from ortgpu_fix.resolve.findings_machine import visible_gpus
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
INSTALLED = "onnxruntime-gpu 1.26.0"
SLICED = {"mig": "nvml: on for GPU 0, 2"}


def planned(document: dict[str, Any]) -> Plan:
    return resolve(facts_json.from_json(document), PlanOptions(), MATRIX)


def with_driver(driver: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    document = synthetic.document(INSTALLED)
    document["driver"] = driver
    return document | more


def of_machine(plan: Plan) -> list[Finding]:
    """Return the errors that no change of packages mends."""
    texts = load_texts("en")
    return [row for row in plan.findings if row.severity == "error" and texts.is_for_user(row)]


@pytest.mark.parametrize("gpus", [[], [{"name": "A100", "compute_capability": "8.0"}]])
@pytest.mark.parametrize(
    ("driver", "code"),
    [
        (None, "no-driver"),
        ({"error": "unloadable: NVML: wrong ELF class"}, "driver-unreadable"),
        ({"version": "535.1", "error": "version-mismatch: 18"}, "driver-version-mismatch"),
        ({}, "driver-unknown"),
    ],
)
def test_one_root_cause_is_said_once(
    driver: dict[str, Any] | None, code: str, gpus: list[dict[str, str]]
) -> None:
    """Without a driver the rules reject the installed release for the same reason."""
    told = [row.code for row in of_machine(planned(with_driver(driver, gpus=gpus)))]

    assert told.count(code) == 1
    assert set(told) <= {code, "no-gpu"}
    assert ("no-gpu" in told) == (driver is not None and not gpus)


@pytest.mark.parametrize(
    ("error", "sources", "code", "evidence"),
    [
        ("cuinit-100: cuInit error 100", {}, "driver-no-device", ()),
        ("cuinit-100: cuInit error 100", SLICED, "mig-without-instance", (SLICED["mig"],)),
        ("cuinit-802: cuInit error 802", {}, "driver-fabric-manager", ()),
        ("cuinit-999: cuInit error 999", SLICED, "driver-failed", ()),
        (
            "cuinit-804: cuInit error 804",
            {"driver.library": "libcuda.so.580.95.05"},
            "driver-forward-compatibility",
            ("libcuda.so.580.95.05", "LD_LIBRARY_PATH=/usr/local/cuda/compat"),
        ),
    ],
)
def test_each_error_of_cuda_has_a_finding_of_its_own(
    error: str, sources: dict[str, str], code: str, evidence: tuple[str, ...]
) -> None:
    driver = {"version": "550.54.15", "cuda": "12.4", "error": error}
    environment = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat"}

    (found,) = of_machine(planned(with_driver(driver, sources=sources, environment=environment)))

    assert (found.code, found.evidence) == (code, evidence)
    plan = planned(with_driver(driver, sources=sources, environment=environment))
    assert [row.code for row in plan.unfixable] == [code]
    said = load_texts("en").summary(found)
    assert error.partition(": ")[2] in said
    assert error.partition(":")[0] not in said  # the code is for programs


def test_a_driver_library_of_another_release_that_works_is_worth_knowing() -> None:
    driver = {"version": "535.104.12", "cuda": "13.0"}
    sources = {"driver.library": "libcuda.so.580.95.05"}

    plan = planned(with_driver(driver, sources=sources))
    (found,) = [row for row in plan.findings if row.code == "forward-compatibility"]

    assert (found.severity, found.evidence) == ("info", ("libcuda.so.580.95.05",))
    assert values_of(found) == {"cuda": "13.0", "version": "535.104.12"}
    silent = planned(with_driver({"version": "535.104.12"}, sources=sources))
    assert "forward-compatibility" not in {row.code for row in silent.findings}
    assert (
        load_texts("en")
        .summary(found)
        .startswith("CUDA 13.0 comes from a driver library of another version")
    )


def test_gpus_that_mig_divides_are_named() -> None:
    driver, sources = {"version": "535.104.12"}, {"mig": "nvml: on for GPU 0, 2"}

    (found,) = [
        row for row in planned(with_driver(driver, sources=sources)).findings if row.code == "mig"
    ]

    assert (found.severity, values_of(found)) == ("info", {"gpus": "0, 2"})


@pytest.mark.parametrize(
    ("value", "left"),
    [("", 0), ("2,0", 0), ("0", 1), ("0,-1,1", 1), ("GPU-8f6a1b", None)],
)
def test_what_cuda_visible_devices_leaves_of_two_gpus(value: str, left: int | None) -> None:
    document = synthetic.document(gpus=("8.0", "8.6")) | {
        "environment": {"CUDA_VISIBLE_DEVICES": value}
    }
    told = [row for row in planned(document).findings if row.code.startswith("gpus-hidden")]

    assert visible_gpus(value, 2) == left
    assert [row.code for row in told] == {0: ["gpus-hidden"], 1: ["gpus-hidden-some"]}.get(
        2 if left is None else left, []
    )
    assert all(row.evidence == (f"CUDA_VISIBLE_DEVICES={value}",) for row in told)


def test_of_gpus_that_are_not_counted_none_is_said_to_be_hidden() -> None:
    document = synthetic.document(gpus=None) | {"environment": {"CUDA_VISIBLE_DEVICES": "0"}}

    assert not [row for row in planned(document).findings if row.code.startswith("gpus-hidden")]


@pytest.mark.parametrize(
    ("platform", "library", "how"),
    [
        ({"system": "linux", "machine": "x86_64"}, "libcuda.so.1", "complete driver"),
        (
            {"system": "linux", "machine": "x86_64", "container": "docker"},
            "libcuda.so.1",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ),
        ({"system": "windows", "machine": "x86_64"}, "nvcuda.dll", "driver from nvidia.com"),
    ],
)
def test_what_brings_the_cuda_library_of_the_driver_depends_on_the_place(
    platform: dict[str, str], library: str, how: str
) -> None:
    error = {"version": "535.1", "error": "libcuda-missing: there is a driver"}
    made = planned(with_driver(error, platform=platform))
    [found] = [row for row in made.findings if row.code == "driver-libcuda-missing"]
    texts = load_texts("en")
    told = f"{texts.summary(found)}. {texts.remedy(found)}"

    assert library in told
    assert how in told
    assert ("NVIDIA_DRIVER_CAPABILITIES" in told) is ("container" in platform)
    assert ("libcuda" in told) is (platform["system"] == "linux")


@pytest.mark.parametrize("error", ["odd: x", *(f"{code}: x" for code in EXPLAINED_ERRORS)])
def test_what_no_change_of_the_environment_mends_is_told_as_that(error: str) -> None:
    made = resolve(synthetic.facts("onnxruntime-gpu 1.26.0", error=error), PlanOptions(), MATRIX)
    [outside] = made.unfixable

    assert made.verdict == "fixable"
    assert outside.code == EXPLAINED_ERRORS.get(error.removesuffix(": x"), "driver-unreadable")
