"""The TensorRT of a build: what its names say."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.tensorrt import LOSE_CUDA, distribution_major, library_major, requirement

BUILDS = {build.version: build for build in synthetic.matrix().builds}


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libnvinfer.so.10", "10"),
        ("NVINFER_10.DLL", "10"),
        ("nvinfer.dll", "8"),
        ("libnvinfer.so.10.3", None),
        ("libnvinfer_lean.so.10", None),
    ],
)
def test_the_major_of_a_library(library: str, expected: str | None) -> None:
    assert library_major(library) == expected


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("tensorrt-cu12", "10.16.1.11", "10"),
        ("tensorrt", "0.0.1", None),
        ("tensorrt-lean", "10.0.1", None),
    ],
)
def test_the_major_that_a_distribution_brings(
    name: str, version: str, expected: str | None
) -> None:
    assert distribution_major(name, version) == expected


@pytest.mark.parametrize(
    ("version", "library", "expected"),
    [
        ("1.26.0", "libnvinfer.so.10", "tensorrt-cu12==10.*"),
        ("1.26.0", "nvinfer_9.dll", "tensorrt==9.*"),
        ("1.26.0", None, None),
    ],
)
def test_what_installs_the_tensorrt_of_a_build(
    version: str, library: str | None, expected: str | None
) -> None:
    assert requirement(BUILDS[version]._replace(tensorrt=library)) == expected


def test_the_releases_that_lose_cuda_are_those_that_explain_knows() -> None:
    rows = {row["code"]: row for row in load_table("failures")["failure"]}

    assert str(LOSE_CUDA) == str(
        type(LOSE_CUDA)(rows["tensorrt-unavailable"]["by_release"]["releases"])
    )
    assert [v for v in ("1.21.1", "1.22.0", "1.23.2", "1.24.1") if LOSE_CUDA.contains(v)] == [
        *("1.22.0", "1.23.2"),
    ]
