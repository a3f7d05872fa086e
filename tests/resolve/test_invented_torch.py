"""torch on an invented table: which build is there, what it requires, where it comes from."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from told import gains, values_of

import synthetic
from ortgpu_fix.errors import cause
from ortgpu_fix.matrix.torch import DomainLibrary, PypiWheel, TorchBuild, TorchTable
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

LINUX = "linux_x86_64"
PINS = ("nvidia-cublas-cu12==12.8.4", "nvidia-cudnn-cu12==9.1.0")


def wheels(name: str, version: str, *pythons: str) -> tuple[PypiWheel, ...]:
    return tuple(
        PypiWheel(python=tag, size=5, sha256="ab", file=f"{name}-{version}-{tag}.whl")
        for tag in pythons or ("cp311",)
    )


def build(version: str, local: str, cuda: str | None, **more: Any) -> TorchBuild:
    values: dict[str, Any] = {
        "platform": LINUX,
        "cudnn": "9.1.0" if cuda else None,
        "sass": ("8.0", "9.0"),
        "ptx": ("9.0",),
        "libraries": "required" if cuda else None,
        "pins": PINS if cuda else (),
        "toolkit": {},
        "glibc": "2.28",
        "pythons": frozenset({"cp311"}),
    }
    return TorchBuild(version=version, local=local, cuda=cuda, **{**values, **more})


CU126 = build("2.7.1", "cu126", "12.6")
PYPI = build("2.7.1", "cu128", "12.8", wheels=wheels("torch", "2.7.1"))
OTHER = build("2.7.1", "cu128", "12.8", libraries="inside", pins=())
CPU = build("2.7.1", "cpu", None)
OLDER = build("2.6.0", "cu124", "12.4", wheels=wheels("torch", "2.6.0"))
CU118 = build("2.6.0", "cu118", "11.8", cudnn="8.9.6")
BUILDS = (CU118, OLDER, CPU, CU126, PYPI, OTHER)


def library(version: str, torch: str, *pythons: str, name: str = "torchvision") -> DomainLibrary:
    return DomainLibrary(
        name=name,
        version=version,
        platform=LINUX,
        torch=SpecifierSet(torch),
        wheels=wheels(name, version, *pythons),
    )


TABLE = TorchTable(
    builds=BUILDS,
    companions=(
        library("0.21.0", "==2.6.0"),
        library("0.22.1", "==2.7.1"),
        library("2.6.0", ">=2.6.0", "py3", name="torchaudio"),
        library("2.7.1", ">=2.7.1", "cp312", name="torchaudio"),
    ),
)
MATRIX = synthetic.matrix()._replace(torch=TABLE)


def told(*packages: Any, wish: str = "keep", **machine: Any) -> dict[str, list[dict[str, str]]]:
    """Return severity, evidence and values of the findings about torch, by code."""
    facts = synthetic.facts(*packages, **machine)
    made = resolve(facts, PlanOptions(torch=wish), MATRIX, unlocking=False)
    found: dict[str, list[dict[str, str]]] = {}
    for row in made.findings:
        if row.code.startswith("torch-") or row.code == "two-cuda-majors":
            evidence = {"evidence": ", ".join(row.evidence)} if row.evidence else {}
            values = {"severity": row.severity, **evidence, **values_of(row)}
            found.setdefault(row.code, []).append(values)
    return found


SET = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.1.0")
PINNED = {"name": "torch", "version": "2.7.1", "requires": [*PINS]}


def test_a_torch_that_cannot_run_is_told_with_the_one_that_can() -> None:
    [old] = told("torch 2.7.1", driver="11.8")["torch-driver-too-old"]
    assert old == {
        "severity": "warning",
        "torch": "torch 2.7.1",
        "cuda": "12.8",
        "floor": "525.60.13",
        "driver_cuda": "11.8",
        "instead": "torch 2.6.0+cu118 (https://download.pytorch.org/whl/cu118)",
    }
    [none] = told("torch 2.7.1", gpus=("7.5",))["torch-no-gpu-code"]
    assert none == {
        "severity": "warning",
        "torch": "torch 2.7.1",
        "gpu": "7.5",
        "carried": str(cause("gpu-code", sass=("8.0", "9.0"), ptx=("9.0",))),
        "instead": "-",
    }
    assert "torch-driver-too-old" not in told("torch 2.7.1", driver="12.0")


def test_who_holds_a_torch_that_cannot_run_is_named() -> None:
    exact = {"name": "app", "version": "1", "requires": ["torch==2.7.1"]}
    newer = {"name": "b", "version": "1", "requires": ["torch>2.6.0"]}
    rows = told("torch 2.7.1", exact, newer, driver="11.8")

    assert rows["torch-held"] == [
        {"severity": "warning", "by": "app 1 (torch==2.7.1), b 1 (torch>2.6.0)"}
    ]
    assert "torch-held" not in told("torch 2.7.1", driver="11.8")
    assert "torch-held" not in told("torch 2.7.1", exact, driver="12.8")


def test_a_wish_that_no_torch_meets_is_told_with_one_that_would_run() -> None:
    [row] = told(wish="==9.9", driver="12.8")["torch-wish-unfit"]

    assert row == {
        "severity": "error",
        "wish": "--torch 9.9",
        "instead": "torch 2.7.1",
    }
    assert "torch-wish-unfit" not in told(wish="==9.9", gpus=())
    assert "torch-wish-unfit" not in told(wish="==9.9", driver=None)


def test_libraries_for_another_cuda_beside_torch_are_named() -> None:
    rows = told(PINNED, *SET, "nvidia-cublas 13.0.2", "onnxruntime-gpu 1.31.0", driver="13.0")
    [row] = rows["two-cuda-majors"]

    what = "onnxruntime-gpu 1.31.0, nvidia-cublas 13.0.2"
    assert row == {
        "severity": "warning",
        "evidence": what,
        "torch": "torch 2.7.1",
        "cuda": "12.8",
        "other": "13",
        "what": what,
    }
    three = told(PINNED, *SET, "nvidia-cublas 13.0.2", "nvidia-cublas-cu11 11.11.3", driver="13.0")
    assert [one["other"] for one in three["two-cuda-majors"]] == ["11", "13"]


def test_what_only_an_import_of_torch_loads_is_told() -> None:
    whole = ("onnxruntime-gpu 1.26.0", "numpy 2.2.6", "flatbuffers 25.0")
    [row] = told(PINNED, *SET, *whole, driver="12.8")["torch-first"]

    assert row == {
        "severity": "info",
        "torch": "torch 2.7.1",
        "libraries": "libcublas.so.12, libcudnn.so.9",
    }
    loaded = {"name": "ortgpu-fix-libraries", "version": "1.26.0"}
    assert "torch-first" not in told(PINNED, *SET, *whole, loaded, driver="12.8")
    assert "torch-first" not in told(PINNED, *SET, *whole[1:], driver="12.8")
    system = [{"name": "LIBCUBLAS.so.12", "path": "/x"}]
    [one] = told(PINNED, *SET, *whole, libraries=system, driver="12.8")["torch-first"]
    assert one["libraries"] == "libcudnn.so.9"
    unpinned = {"name": "torch", "version": "2.7.1", "requires": ["nvidia-cublas-cu12==12.8.4"]}
    [part] = told(unpinned, *SET, *whole, driver="12.8")["torch-first"]
    assert part["libraries"] == "libcublas.so.12"
    assert "torch-first" not in told("torch 9.9+cu128", *SET, *whole, driver="12.8")
    inside = told("torch 2.7.1+cu128", *whole, driver="12.8")
    assert inside["torch-first"][0]["libraries"] == "libcublas.so.12, libcudnn.so.9"


@pytest.mark.parametrize(("cudnn", "code"), [("9.0.9", "older"), ("9.10.2", "newer"), (None, None)])
def test_a_cudnn_that_was_moved_under_torch(cudnn: str | None, code: str | None) -> None:
    rows = told(PINNED, *([f"nvidia-cudnn-cu12 {cudnn}"] if cudnn else []), driver="12.8")
    found = {name: row for name, row in rows.items() if name.startswith("torch-cudnn")}

    assert found == (
        {
            f"torch-cudnn-{code}": [
                {
                    "severity": "warning",
                    "torch": "torch 2.7.1",
                    "installed": f"nvidia-cudnn-cu12 {cudnn}",
                    "wanted": "9.1.0",
                }
            ]
        }
        if code
        else {}
    )


def test_who_was_compiled_against_a_torch_that_goes_is_named() -> None:
    bound = {"name": "flash", "version": "2", "requires": ["torch==2.6.0"]}
    loose = {"name": "loose", "version": "2", "requires": ["torch>=2"]}
    vision = {"name": "torchvision", "version": "0.21.0", "requires": ["torch==2.6.0"]}
    rows = told("torch 2.6.0", loose, vision, wish="==2.7.1", driver="12.8")
    assert "torch-bound" not in rows

    exact = {"name": "flash", "version": "2", "requires": ["torch==2.7.1"]}
    rows = told("torch 2.6.0", exact, loose, vision, wish="==2.7.1", driver="12.8")
    assert rows["torch-bound"] == [{"severity": "warning", "torch": "torch 2.6.0", "by": "flash 2"}]
    assert "torch-bound" not in told("torch 2.6.0", bound, driver="12.8")


def chosen(*packages: Any, wish: str = "match", **machine: Any) -> Plan:
    facts = synthetic.facts(*packages, **machine)
    return resolve(facts, PlanOptions(torch=wish), MATRIX, unlocking=False)


def rejected(made: Plan) -> list[tuple[str, str]]:
    return [(row.version, row.reasons[0].code) for row in made.rejected if row.package == "torch"]


def test_a_torch_without_a_partner_is_told_as_that() -> None:
    options = PlanOptions(torch="==2.7.1", cuda="13")
    made = resolve(synthetic.facts(driver="13.0"), options, MATRIX, unlocking=False)

    assert made.verdict == "impossible"
    assert {code for _, code in rejected(made)} == {"torch-without-partner"}
    partners = [row for row in made.rejected if row.package == "onnxruntime-gpu"]
    assert "torch-none-fits" in {why.code for row in partners for why in row.reasons}


@pytest.mark.parametrize(
    ("packages", "wish", "code", "values"),
    [
        (("torch 2.7.1",), "match", "why-torch-kept", {"torch": "torch 2.7.1", "cuda": "12"}),
        ((), "==2.7.1", "why-torch-newest", {"torch": "torch 2.7.1", "cuda": "12"}),
        (
            ("torch 2.6.0",),
            "==2.7.1",
            "why-torch-nearest",
            {"torch": "torch 2.7.1", "cuda": "12", "before": "torch 2.6.0"},
        ),
    ],
)
def test_why_a_torch_was_taken(
    packages: tuple[str, ...], wish: str, code: str, values: dict[str, str]
) -> None:
    made = chosen(*packages, wish=wish, driver="12.8")

    assert [values_of(why) for why in made.why if why.code == code] == [values]
    others = {"why-torch-kept", "why-torch-newest", "why-torch-nearest"} - {code}
    assert not others & {why.code for why in made.why}


def test_a_newer_driver_gains_a_release_with_the_torch_that_it_then_gets() -> None:
    facts = synthetic.facts("torch 2.6.0+cu118", driver="11.8")
    made = resolve(facts, PlanOptions(torch="match"), MATRIX)
    gained = {row.change.code: gains(row) for row in made.unlock}

    assert made.release == "1.18.0"
    assert gained["newer-driver"] == "onnxruntime-gpu 1.26.0"


def test_a_release_that_cannot_work_is_told_why_and_not_that_no_torch_fits() -> None:
    made = resolve(synthetic.facts(driver="11.8"), PlanOptions(torch="==9.9"), MATRIX)
    against = {row.version: [why.code for why in row.reasons] for row in made.rejected}

    assert against["1.18.0"] == ["torch-none-fits"]
    assert against["1.26.0"] == ["driver-too-old"]


def test_the_build_that_is_there_is_judged_by_those_of_its_platform() -> None:
    [build] = [row for row in MATRIX.builds if row.platform == "linux_aarch64"]
    arm = build._replace(version="1.27.0")
    damaged = {"distribution": "onnxruntime-gpu", "version": "1.28.0", "intact": False}
    packages = (PINNED, *SET, "onnxruntime-gpu 1.28.0")
    facts = synthetic.facts(*packages, onnxruntime=damaged, driver="13.0")
    made = resolve(facts, PlanOptions(), MATRIX._replace(builds=(*MATRIX.builds, arm)))

    assert "two-cuda-majors" not in {row.code for row in made.findings}


@pytest.mark.parametrize(
    ("wish", "installed", "found"),
    [
        (">2.7.1", "2.7.1", "2.9.0"),  # the installed one is not wished for: the newest
        (">=2.6.0", "2.6.0", "2.6.0"),
        (">=2.6.0,!=2.7.1", "2.7.0", "2.8.0"),  # the nearest, of two as far the newer
    ],
)
def test_which_release_is_taken_of_those_that_are_wished_for(
    wish: str, installed: str, found: str
) -> None:
    newer = (build("2.8.0", "cu128", "12.8"), build("2.9.0", "cu128", "12.8"))
    matrix = MATRIX._replace(torch=TorchTable(builds=(*BUILDS, *newer)))
    facts = synthetic.facts(f"torch {installed}", driver="12.8")
    made = resolve(facts, PlanOptions(torch=wish), matrix, unlocking=False)
    [torch] = [wheel for wheel in made.selection if wheel.name == "torch"]

    assert torch.version.partition("+")[0] == found
