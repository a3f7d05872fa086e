"""Nothing that a plan can name is missing from the matrix.

What must be there was read off the index's own pages on 2026-11-21, not from the tables.
"""

from __future__ import annotations

import pytest
from tables import tables

TABLES = tables()
LINUX, ARM, WINDOWS = "linux_x86_64", "linux_aarch64", "windows_x86_64"
EVERYWHERE = (LINUX, ARM, WINDOWS)

COMPONENTS = {
    # Distribution: the oldest and the newest release, and the platforms of the newest.
    "nvidia-cublas-cu11": ("11.10.3.66", "11.11.3.6", EVERYWHERE),
    "nvidia-cuda-nvrtc-cu11": ("11.7.99", "11.8.89", EVERYWHERE),
    "nvidia-cuda-runtime-cu11": ("11.7.99", "11.8.89", EVERYWHERE),
    "nvidia-cudnn-cu11": ("8.5.0.96", "9.10.2.21", (LINUX, WINDOWS)),
    "nvidia-cufft-cu11": ("10.7.2.91", "10.9.0.58", EVERYWHERE),
    "nvidia-curand-cu11": ("10.2.10.91", "10.3.0.86", EVERYWHERE),
    "nvidia-cublas-cu12": ("12.0.1.189", "12.9.3.13", (LINUX, ARM)),
    "nvidia-cuda-nvrtc-cu12": ("12.0.76", "12.9.86", EVERYWHERE),
    "nvidia-cuda-runtime-cu12": ("12.0.107", "12.9.79", EVERYWHERE),
    "nvidia-cudnn-cu12": ("8.8.0.121", "9.28.0.42", EVERYWHERE),
    "nvidia-cufft-cu12": ("11.0.0.21", "11.4.1.4", EVERYWHERE),
    "nvidia-curand-cu12": ("10.3.1.50", "10.3.10.19", EVERYWHERE),
    "nvidia-nvjitlink-cu12": ("12.0.76", "12.9.86", EVERYWHERE),
    "nvidia-cublas": ("13.0.0.19", "13.10.0.20", EVERYWHERE),
    "nvidia-cuda-nvrtc": ("13.0.48", "13.5.37", EVERYWHERE),
    "nvidia-cuda-runtime": ("13.0.48", "13.5.37", EVERYWHERE),
    "nvidia-cudnn-cu13": ("9.12.0.46", "9.28.0.42", EVERYWHERE),
    "nvidia-cufft": ("12.0.0.15", "12.5.0.14", EVERYWHERE),
    "nvidia-curand": ("10.4.0.35", "10.4.5.25", EVERYWHERE),
    "nvidia-nvjitlink": ("13.0.39", "13.5.37", EVERYWHERE),
}
RELEASES = tuple(
    """
    1.11.0 1.11.1 1.12.0 1.12.1 1.13.1 1.14.0 1.14.1 1.15.0 1.15.1 1.16.0 1.16.3 1.17.0 1.17.1
    1.18.0 1.18.1 1.19.0 1.19.2 1.20.0 1.20.2 1.21.0 1.21.1 1.22.0 1.23.0 1.23.2 1.24.1 1.24.4
    1.25.0 1.25.1 1.26.0 1.27.0 1.28.0 1.29.0 1.30.0 1.31.0 1.31.1
    """.split()  # noqa: SIM905 - easier to read
)
FOR_ARM = ("1.29.0", "1.30.0", "1.31.0", "1.31.1")
GONE = ("1.16.1", "1.16.2", "1.20.1", "1.24.2", "1.24.3")
TOOLKITS = tuple(
    """
    11.8.0 12.0.0 12.0.1 12.1.0 12.1.1 12.2.0 12.2.1 12.2.2 12.3.0 12.3.1 12.3.2 12.4.0 12.4.1
    12.5.0 12.5.1 12.6.0 12.6.1 12.6.2 12.6.3 12.8.0 12.8.1 12.8.2.0 12.9.0 12.9.1 12.9.2.0
    13.0.0 13.0.1 13.0.2 13.0.3.0 13.1.0 13.1.1 13.1.2.0 13.2.0 13.2.1 13.2.2 13.3.0 13.3.1
    13.4.1.0 13.4.2 13.4.3 13.5.0
    """.split()  # noqa: SIM905 - easier to read
)
TORCH = tuple(
    """
    1.12.0 1.12.1 1.13.0 1.13.1 2.0.0 2.0.1 2.1.0 2.1.1 2.1.2 2.2.0 2.2.1 2.2.2 2.3.0 2.3.1
    2.4.0 2.4.1 2.5.0 2.5.1 2.6.0 2.7.0 2.7.1 2.8.0 2.9.0 2.9.1 2.10.0 2.11.0 2.12.0 2.12.1
    2.13.0 2.14.0 2.14.1 2.15.0
    """.split()  # noqa: SIM905 - easier to read
)


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_is_there_on_every_platform_that_has_a_wheel(name: str) -> None:
    oldest, newest, platforms = COMPONENTS[name]
    (row,) = (row for row in TABLES["nvidia"]["distribution"] if row["name"] == name)
    there = {(release["version"], release["platform"]) for release in row["releases"]}

    assert {(newest, platform) for platform in platforms} <= there
    assert (oldest, LINUX) in there


def test_there_is_no_component_that_nobody_looked_for() -> None:
    assert {row["name"] for row in TABLES["nvidia"]["distribution"]} == set(COMPONENTS)


def test_every_release_of_onnxruntime_gpu_is_there() -> None:
    rows = TABLES["onnxruntime"]["build"]
    there = {(row["version"], row["platform"]) for row in rows}

    assert {(release, system) for release in RELEASES for system in (LINUX, WINDOWS)} <= there
    assert {(release, ARM) for release in FOR_ARM} <= there
    assert set(GONE) <= {row["version"] for row in TABLES["onnxruntime"]["gone"]}


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("1.11.0", {"flatbuffers", "numpy", "protobuf"}),
        ("1.18.1", {"coloredlogs", "flatbuffers", "numpy", "packaging", "protobuf", "sympy"}),
        ("1.31.1", {"flatbuffers", "numpy", "packaging", "protobuf"}),
    ],
)
def test_what_a_release_requires(release: str, names: set[str]) -> None:
    for row in TABLES["onnxruntime"]["build"]:
        if row["version"] == release:
            said = {line.partition(" ")[0].partition(">")[0] for line in row["requires"]}
            assert said == names, row["platform"]


def test_every_toolkit_is_there() -> None:
    assert set(TOOLKITS) <= {row["version"] for row in TABLES["toolkits"]["toolkit"]}


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
def test_every_torch_is_there(platform: str) -> None:
    there = {row["version"] for row in TABLES["torch"]["torch"] if row["platform"] == platform}

    assert set(TORCH) <= there


def test_who_owns_the_folder_and_who_requires_onnxruntime_by_name() -> None:
    owners = {row["name"] for row in TABLES["distributions"]["owner"]}
    dependents = {row["name"] for row in TABLES["distributions"]["dependent"]}

    assert {"onnxruntime", "onnxruntime-gpu", "onnxruntime-directml"} <= owners
    assert {"chromadb", "insightface", "fastembed", "magika", "markitdown"} <= dependents
