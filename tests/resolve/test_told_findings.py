"""What a plan tells of an environment, with the values that a text shows."""

from __future__ import annotations

from typing import Any

import pytest
from told import values_of

import synthetic
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = synthetic.matrix()
ORDINARY = ("numpy 2.2.6", "flatbuffers 25.0")
LIBRARIES = ("nvidia-cublas-cu12 12.8.4", "nvidia-cudnn-cu12 9.28.0")
CUDNN, CUBLAS = "libcudnn.so.9", "libcublas.so.12"


def told(*packages: Any, **machine: Any) -> dict[str, list[dict[str, str]]]:
    """Return the values of the findings by code."""
    made = resolve(synthetic.facts(*packages, **machine), PlanOptions(), MATRIX)
    found: dict[str, list[dict[str, str]]] = {}
    for row in made.findings:
        found.setdefault(row.code, []).append(values_of(row))
    return found


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("onnxruntime 1.22.0", "cpu-build-installed"),
        ("onnxruntime-directml 1.22.0", "other-build-installed"),
        ({"name": "onnxruntime", "version": "1.22.0", "outside": True}, "copy-outside"),
        ({"name": "onnxruntime", "version": "1.22.0", "provided": True}, None),
    ],
)
def test_which_build_is_in_the_way(package: Any, code: str | None) -> None:
    """The stand-in that this program installs is in nobody's way."""
    found = told(package)
    name = package if isinstance(package, str) else f"{package['name']} {package['version']}"
    codes = {"cpu-build-installed", "other-build-installed", "copy-outside"}

    assert {one: found[one] for one in codes & found.keys()} == (
        {code: [{"distribution": name}]} if code else {}
    )


def test_a_cudnn_8_of_the_system_needs_no_zlib_on_linux() -> None:
    rows = [{"name": "libcublas.so.11"}, {"name": "libcudnn.so.8"}]
    packages = ("onnxruntime-gpu 1.18.0", "numpy 1.26.4", "flatbuffers 25.0")
    found = told(*packages, libraries=rows, driver="11.8")

    assert len(found["system-library"]) == 2
    assert "zlibwapi-needed" not in found


def test_libraries_of_the_system_are_told_with_what_is_known_of_them() -> None:
    rows = [
        {"name": CUDNN, "path": "/usr/lib/libcudnn.so.9", "version": "9.28.0"},
        {"name": CUBLAS, "path": "/opt/libcublas.so.12"},
    ]
    found = told("onnxruntime-gpu 1.26.0", *ORDINARY, libraries=rows)
    unplaced = told("onnxruntime-gpu 1.26.0", *ORDINARY, libraries=[rows[0], {"name": CUBLAS}])

    assert unplaced["system-library"][0] == {"library": CUBLAS, "path": "", "version": ""}

    assert sorted(found["system-library"], key=lambda row: row["library"]) == [
        {"library": CUBLAS, "path": "/opt/libcublas.so.12", "version": ""},
        {"library": CUDNN, "path": "/usr/lib/libcudnn.so.9", "version": "9.28.0"},
    ]


@pytest.mark.parametrize(
    ("name", "version", "cublas"),
    [("nvidia-cudnn-cu12", "9.28.0", "12.8.4"), ("user", "1.0", "12.9.1")],
)
def test_what_a_wheel_that_a_plan_replaces_requires_does_not_bind_it(
    name: str, version: str, cublas: str
) -> None:
    """What others require does."""
    row = {"name": name, "version": version, "requires": ["nvidia-cublas-cu12==12.9.1"]}
    made = resolve(synthetic.facts("onnxruntime 1.22.0", row), PlanOptions(), MATRIX)

    assert {wheel.version for wheel in made.selection if "cublas" in wheel.name} == {cublas}


@pytest.mark.parametrize(
    ("gpus", "named"),
    [
        (("8.0", "5.2"), {"5.2"}),  # without the old card newer releases work
        (("5.2",), set()),  # ignoring the only one leaves none
        (("8.0",), set()),
        (("5.2", "5.2"), set()),
    ],
)
def test_a_gpu_is_named_to_be_ignored_where_another_remains(
    gpus: tuple[str, ...], named: set[str]
) -> None:
    made = resolve(synthetic.facts(driver="13.0", gpus=gpus), PlanOptions(), MATRIX)

    ignored = {
        values_of(row.change)["gpu"] for row in made.unlock if row.change.code == "ignore-gpu"
    }
    assert ignored == named


@pytest.mark.parametrize(
    ("package", "comes"),
    [
        ("onnxruntime 1.26.0", True),  # the CPU build of the same number is no stand-in
        ({"name": "onnxruntime", "version": "1.26.0", "provided": True}, False),
        ({"name": "onnxruntime", "version": "1.23.0", "provided": True}, True),
    ],
)
def test_the_stand_in_comes_where_it_is_not(package: Any, *, comes: bool) -> None:
    made = resolve(synthetic.facts(package), PlanOptions(), MATRIX)

    assert made.release == "1.26.0"
    assert ("onnxruntime" in {row.name for row in made.companions}) is comes
