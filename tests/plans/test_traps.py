"""Traps that machines fell into, on the real matrix: one named test each.

What is expected here was read from the wheels by hand, and never computed from the tables.
"""

from __future__ import annotations

from typing import Any

import pytest

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

MATRIX = load_matrix()
WINDOWS = {"system": "windows", "machine": "x86_64"}
ORDINARY = ("flatbuffers 25.2.10", "packaging 25.0", "coloredlogs 15.0.1", "sympy 1.14.0")
DIVIDED = ["1.21.0", "1.21.1", "1.22.0", "1.23.0", "1.23.2", "1.24.1", "1.24.4", "1.25.0", "1.25.1"]
DIVIDED.append("1.26.0")
"""The releases whose Linux and Windows wheels carry different GPU code."""


def plan(*packages: Any, ort: str = "", **machine: Any) -> Plan:
    found = facts_json.from_json(synthetic.document(*packages, **machine))
    return resolve(found, PlanOptions(onnxruntime=ort), MATRIX)


def selected(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.selection}


def reasons(made: Plan, version: str) -> list[str]:
    return [why.code for row in made.rejected if row.version == version for why in row.reasons]


def test_1_23_0_has_ptx_for_hopper_alone_and_never_runs_on_blackwell() -> None:
    made = plan(driver="13.4", gpus=("12.0",), ort="==1.23.0")

    assert made.verdict == "impossible"
    assert reasons(made, "1.23.0") == ["no-gpu-code"]


def test_1_23_2_runs_on_blackwell_by_ptx_with_newer_libraries_than_it_was_built_with() -> None:
    """CUDA 12.2 has no machine code for Blackwell in cuBLAS; 12.8 is the first that has."""
    made = plan(driver="13.4", gpus=("12.0",), ort="==1.23.2")

    assert made.verdict == "fixable"
    assert selected(made)["nvidia-cublas-cu12"].startswith("12.8.")


def test_1_23_0_runs_on_hopper() -> None:
    assert plan(driver="12.2", gpus=("9.0",), ort="==1.23.0").verdict == "fixable"


def test_v100_and_a100_run_no_windows_wheel_from_1_21_to_1_26() -> None:
    on_windows = plan(driver="13.4", gpus=("7.0",), platform=WINDOWS)
    on_linux = plan(driver="13.4", gpus=("7.0",))

    for version in DIVIDED:
        assert "no-gpu-code" in reasons(on_windows, version), version
        assert "no-gpu-code" not in reasons(on_linux, version), version


@pytest.mark.parametrize(
    ("gpu", "driver", "version"),
    [("7.0", "12.4", "1.20.2"), ("8.0", "12.4", "1.20.2"), ("8.0", "13.0", "1.31.1")],
)
def test_what_v100_and_a100_run_on_windows_instead(gpu: str, driver: str, version: str) -> None:
    made = plan(driver=driver, gpus=(gpu,), platform=WINDOWS)

    assert selected(made)["onnxruntime-gpu"] == version


@pytest.mark.parametrize("platform", [{}, {"platform": WINDOWS}])
def test_b200_runs_nothing_from_1_29_on(platform: dict[str, Any]) -> None:
    assert "no-gpu-code" in reasons(plan(driver="13.4", gpus=("10.0",), **platform), "1.31.1")


def test_b200_takes_1_28_with_a_driver_for_cuda_13_and_1_26_with_one_for_12_8() -> None:
    """1.28.0 has machine code for 10.0a; 1.26.0 has PTX 9.0 of CUDA 12.8, 1.23.2 of CUDA 12.2."""
    assert selected(plan(driver="13.0", gpus=("10.0",)))["onnxruntime-gpu"] == "1.28.0"
    assert selected(plan(driver="12.8", gpus=("10.0",)))["onnxruntime-gpu"] == "1.26.0"
    assert selected(plan(driver="12.6", gpus=("10.0",)))["onnxruntime-gpu"] == "1.23.2"
    assert plan(driver="12.0", gpus=("10.0",)).verdict == "impossible"


TORCH = {
    "name": "torch",
    "version": "2.4.1",
    "requires": ["nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == 'Linux'"],
}


def test_cudnn_for_cuda_12_never_brings_the_one_for_cuda_13() -> None:
    """Old cuDNN 9 looks for a file on Windows that newer ones bring, for each CUDA under one name.

    The plan once took nvidia-cudnn-cu13 for it, and uninstalled nvidia-cudnn-cu12 from under it.
    """
    made = plan(
        TORCH,
        *ORDINARY,
        "nvidia-cudnn-cu12 9.1.0.70",
        driver="12.0",
        gpus=("7.5",),
        platform=WINDOWS,
    )

    assert "nvidia-cudnn-cu13" not in selected(made)
    assert "nvidia-cudnn-cu12" not in made.uninstall


def test_a_missing_numpy_that_others_limit_is_a_conflict() -> None:
    """1.18.0 requires numpy >= 1.26 on Python 3.12, and whoever is there already forbids it."""
    old = {"name": "old-app", "version": "1.0", "requires": ["numpy<1.26"]}

    made = plan(old, *ORDINARY, python="3.12.1", driver="11.8", platform=WINDOWS)

    assert "requirement-conflict" in reasons(made, "1.18.0")


def test_an_upper_bound_alone_is_no_conflict() -> None:
    old = {"name": "old-app", "version": "1.0", "requires": ["protobuf<4"]}

    made = plan(old, *ORDINARY, driver="12.2")

    assert reasons(made, "1.26.0") == []
    assert made.requires == ("numpy>=1.21.6", "protobuf<4")


def test_torch_for_cuda_12_8_on_blackwell_keeps_its_cufft() -> None:
    """cuFFT 11.3.3.83 has PTX alone for 12.0; torch 2.8 to 2.10 pin it, and run there with it."""
    torch = {
        "name": "torch",
        "version": "2.10.0",
        "requires": ["nvidia-cufft-cu12==11.3.3.83", "nvidia-cudnn-cu12==9.10.2.21"],
    }
    wheels = ("nvidia-cufft-cu12 11.3.3.83", "nvidia-cudnn-cu12 9.10.2.21")

    made = plan(torch, *wheels, *ORDINARY, driver="13.0", gpus=("12.0",))

    assert selected(made)["onnxruntime-gpu"] == "1.26.0"
    assert selected(made)["nvidia-cufft-cu12"] == "11.3.3.83"


def test_ptx_in_cufft_needs_a_driver_as_new_as_its_toolkit() -> None:
    cufft = "nvidia-cufft-cu12 11.3.3.83"

    made = plan(cufft, *ORDINARY, driver="12.4", gpus=("12.0",), ort="==1.23.2")

    assert selected(made)["nvidia-cufft-cu12"] == "11.4.1.4"


def test_a_cudnn_of_the_image_without_code_for_the_gpu_does_not_count() -> None:
    """cuDNN 9.11 dropped Volta: an image with 9.28 is not healthy for a V100."""
    needed = ["cublas.so.12", "cublasLt.so.12", "cudart.so.12", "cufft.so.11", "curand.so.10"]
    image = [{"name": f"lib{name}"} for name in needed]
    rest = ("onnxruntime-gpu 1.26.0", "numpy 2.2.6", "protobuf 6.31.1", *ORDINARY)

    for version, verdict in (("9.10.2", "healthy"), ("9.28.0", "fixable")):
        libraries = [*image, {"name": "libcudnn.so.9", "version": version}]
        made = plan(*rest, gpus=("7.0",), driver="12.4", libraries=libraries)

        assert made.verdict == verdict


NEWEST_ON_535 = {
    "3.8.1": "1.19.2",
    "3.10.1": "1.23.2",
    "3.14.1": "1.26.0",
}


@pytest.mark.parametrize("python", NEWEST_ON_535)
@pytest.mark.parametrize("platform", [{}, {"platform": WINDOWS}])
def test_what_driver_535_runs_on_each_python(python: str, platform: dict[str, Any]) -> None:
    made = plan(driver="12.2", gpus=("8.6",), python=python, **platform)

    assert selected(made)["onnxruntime-gpu"] == NEWEST_ON_535[python]
