"""The TensorRT of a build: what its names say."""

from __future__ import annotations

import pytest

import synthetic
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.tensorrt import LOSE_CUDA, distribution_major, library_major, requirement

BUILDS = {build.version: build for build in synthetic.matrix().builds}


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libnvinfer.so.10", "10"),
        ("libnvinfer.so.8", "8"),
        ("nvinfer_11.dll", "11"),
        ("NVINFER_10.DLL", "10"),
        ("nvinfer.dll", "8"),
        ("libnvinfer.so.10.3", None),
        ("libnvinfer_lean.so.10", None),
        ("xlibnvinfer.so.10", None),
        ("nvinfer_plugin_10.dll", None),
        ("", None),
    ],
)
def test_the_major_of_a_library(library: str, expected: str | None) -> None:
    assert library_major(library) == expected


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("tensorrt", "8.6.1.post1", "8"),
        ("tensorrt-cu12", "10.16.1.11", "10"),
        ("tensorrt-cu13-libs", "11.4.0.106", "11"),
        ("tensorrt-libs", "9.3.0.post12.dev1", "9"),
        ("tensorrt", "0.0.1", None),
        ("tensorrt-cu12-bindings", "10.0.1", None),
        ("tensorrt-lean", "10.0.1", None),
        ("tensorrt-rtx", "1.0", None),
        ("torch-tensorrt", "2.7.0", None),
        ("nvidia-tensorrt", "99.0.0", None),
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
        ("1.31.0", "nvinfer_10.dll", "tensorrt-cu13==10.*"),
        ("1.18.0", "libnvinfer.so.8", "tensorrt==8.*"),
        ("1.26.0", None, None),
    ],
)
def test_what_installs_the_tensorrt_of_a_build(
    version: str, library: str | None, expected: str | None
) -> None:
    assert requirement(BUILDS[version]._replace(tensorrt=library)) == expected


def test_every_build_with_a_tensorrt_provider_has_a_requirement() -> None:
    """As PyPI has them: `tensorrt` 8 for all, from 10 on one for CUDA 11, 12 and 13 each."""
    found = {requirement(build) for build in load_matrix(torch=False).builds}

    assert found == {
        *("tensorrt==8.*", "tensorrt-cu11==10.*", "tensorrt-cu12==10.*"),
        *("tensorrt-cu13==10.*", None),
    }


def test_the_releases_that_lose_cuda_are_those_that_explain_knows() -> None:
    rows = {row["code"]: row for row in load_table("failures")["failure"]}

    assert str(LOSE_CUDA) == str(
        type(LOSE_CUDA)(rows["tensorrt-unavailable"]["by_release"]["releases"])
    )
    assert [v for v in ("1.21.1", "1.22.0", "1.23.2", "1.24.1") if LOSE_CUDA.contains(v)] == [
        *("1.22.0", "1.23.2"),
    ]
