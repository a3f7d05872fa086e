"""The curated tables: every row has a public source, and the rows agree with what was measured.

Nothing here is computed from the table that it checks: expectations are measurements (real driver
libraries, real GPUs' names), or one table is held against another one.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.report import supported as matrix_runs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
MATRIX = load_matrix()
NAMES = ("drivers", "gpus", "distributions", "failures")
PACKAGE = re.compile(r"[A-Za-z0-9_.+-]+(?:\.whl|\.tar\.gz)")


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((files("ortgpu_fix.data") / f"{name}.toml").read_text("utf-8"))


def rows(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{name}.{table}[{number}]", row)
        for table, entries in load(name).items()
        if isinstance(entries, list)
        for number, row in enumerate(entries)
        if isinstance(row, dict)
    ]


def validator(name: str) -> Any:
    """Return what holds a table against the schema beside it."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((files("ortgpu_fix.data") / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", [*NAMES, "limits", "texts"])
def test_a_table_has_the_shape_of_its_schema(name: str) -> None:
    validator(name).validate(load(name))


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("drivers", ("floor", 0, "linux"), "soon"),
        ("gpus", ("family", 0, "compute_capability"), "120"),
        ("distributions", ("owner", 0, "name"), "Onnx Runtime"),
        ("failures", ("failure", 0, "code"), "Not a code"),
        ("limits", ("limit", 0, "checked"), "yesterday"),
        ("texts", ("errors", "usage", "exit"), 1),
        ("texts", ("findings", "no-driver", "summary", "zh"), ""),
        ("texts", ("verdicts", "works", "text"), "a text without its language"),
        ("texts", ("verdicts", "works", "message"), {"en": "no such part", "zh": "无"}),
    ],
)
def test_a_planted_error_is_seen(name: str, path: tuple[str | int, ...], value: Any) -> None:
    damaged: Any = load(name)
    row = damaged
    for key in path[:-1]:
        row = row[key]
    row[path[-1]] = value

    assert not validator(name).is_valid(damaged)


@pytest.mark.parametrize("name", [*NAMES, "limits"])
def test_every_row_has_a_public_source_and_a_date(name: str) -> None:
    for where, row in rows(name):
        sources = row["sources"] if "sources" in row else row["source"].split(", ")
        assert sources, where
        for source in sources:
            assert source.startswith("https://") or PACKAGE.fullmatch(source), (where, source)
        assert date.fromisoformat(row["checked"]) >= date(2026, 1, 1), where


# Drivers


def floor(system: str, cuda: str) -> Version:
    return Version(next(r[system] for r in load("drivers")["floor"] if r["cuda"] == cuda))


def spoken(release: str) -> str:
    number = int(release.split(".", maxsplit=1)[0])
    known = [row for row in load("drivers")["branch"] if row["branch"] <= number]
    return str(max(known, key=lambda row: row["branch"])["cuda"])


@pytest.mark.parametrize(
    ("release", "runs"),
    [
        # Measured with NVIDIA's own user-mode libraries: CUDA failure 100 (no device) against 35
        # (driver too old).
        ("418.226.00", ()),
        ("450.248.02", ("11",)),
        ("460.106.00", ("11",)),
        ("470.256.02", ("11",)),
        ("525.147.05", ("11", "12")),
        ("535.261.03", ("11", "12")),
        ("550.163.01", ("11", "12")),
        ("555.58.02", ("11", "12")),
    ],
)
def test_a_floor_is_what_real_drivers_do(release: str, runs: tuple[str, ...]) -> None:
    for cuda in ("11", "12", "13"):
        assert (Version(release) >= floor("linux", cuda)) == (cuda in runs), cuda
        assert (int(spoken(release).split(".")[0]) >= int(cuda)) == (cuda in runs), cuda


REAL = "418.226.00 450.248.02 460.106.00 470.256.02 525.147.05 535.261.03 550.163.01 555.58.02"
TOO_OLD = {
    # Release of onnxruntime-gpu, to how many of these drivers, oldest first, were too old for it
    # when its session was asked for: CUDA failure 35, a crash, or a library that the driver lacks.
    "1.16.3": 1,
    "1.18.1": 1,
    "1.19.2": 4,
    "1.26.0": 4,
    "1.28.0": 8,
}


@functools.cache
def judged(driver: str) -> list[matrix_runs.JudgedBuild]:
    return list(matrix_runs.judge_builds(MATRIX, driver, ["7.5"]))


@pytest.mark.parametrize("release", TOO_OLD)
def test_verify_and_the_matrix_agree_with_real_drivers_cell_by_cell(release: str) -> None:
    """`scripts/prove/verify.py` wrote down what `verify` says; `matrix` is asked now."""
    results = max((ROOT / "scripts/prove/results").glob("verify-*.json"))
    recorded = {
        row["driver"]: row["verdict"]
        for row in json.loads(results.read_text("utf-8"))["rows"]
        if row["release"] == release
    }
    for place, driver in enumerate(REAL.split()):
        (reasons,) = (
            {why.code for why in row.reasons}
            for row in judged(driver)
            if (row.build.version, row.build.platform) == (release, "linux_x86_64")
        )
        too_old = place < TOO_OLD[release]

        assert recorded[driver] == ("driver-too-old" if too_old else "no-gpu"), driver
        assert ("driver-too-old" in reasons) == too_old, driver


@pytest.mark.parametrize(
    ("release", "cuda"),
    [
        ("522.06", "11.8"),  # Windows
        ("535.104.12", "12.2"),
        ("537.13", "12.2"),  # Windows
        ("546.12", "12.3"),  # Windows
        ("340.108", "6.5"),
        ("390.157", "9.1"),
        ("565.57.01", "12.7"),
        ("576.57", "12.9"),  # Windows
        ("582.28", "13.0"),  # Windows
        ("592.19", "13.1"),  # Windows
        ("596.36", "13.2"),  # Windows
        ("610.43.02", "13.3"),
        ("617.14", "13.4"),  # Windows
        ("620.57.01", "13.5"),
        ("700.10", "13.5"),  # newer than the table: at least what the last row says
    ],
)
def test_a_branch_speaks_what_its_banner_says(release: str, cuda: str) -> None:
    assert spoken(release) == cuda


def without_floor(builds: list[Any], floors: list[Any]) -> list[str]:
    """Return the builds that need a CUDA major whose oldest driver is not known there."""
    known = {
        (row["cuda"], system)
        for row in floors
        for system in ("linux", "windows")
        if row.get(system)
    }
    return [
        f"{build['version']} {build['platform']}"
        for build in builds
        if (build["cuda"].partition(".")[0], build["platform"].partition("_")[0]) not in known
    ]


def test_every_cuda_major_has_a_driver_floor() -> None:
    builds, floors = load("onnxruntime")["build"], load("drivers")["floor"]
    planted = [row for row in floors if row["cuda"] != "12"]

    assert without_floor(builds, floors) == []
    assert "1.26.0 windows_x86_64" in without_floor(builds, planted)


def test_a_toolkit_came_with_a_driver_of_the_branch_that_speaks_it() -> None:
    for row in load("drivers")["toolkit"]:
        assert spoken(row["linux"]) == row["cuda"], row
        if "windows" in row:
            assert spoken(row["windows"]) == row["cuda"], row


@pytest.mark.parametrize(("table", "key"), [("floor", "cuda"), ("branch", "branch")])
def test_newer_drivers_speak_newer_cuda(table: str, key: str) -> None:
    found = load("drivers")[table]
    order = [Version(str(row[key])) for row in found]
    assert order == sorted(set(order))
    for field in {"linux", "windows", "cuda"} & set(found[0]):
        values = [Version(row[field]) for row in found]
        assert values == sorted(set(values)), field


# GPUs

NOISE = re.compile(
    r"nvidia|tesla|grid|gpu|laptop|mobile|with|max|q|design|edition|generation|workstation|server|sff"
    r"|embedded|active|ac|nvl|dgxs|fhhl|pcie|hbm2e?|hbm3e?|sxm\d?"
)


def key(name: str) -> str:
    """Normalise a product name the way that the comment in gpus.toml describes."""
    name = name.lower().split(" mig ")[0]
    name = re.sub(r"-\d+(-\d+)?[abcq]$", "", name)
    name = re.sub(r"[-/()]", " ", name)
    name = re.sub(r"\b\d+ ?(gb|g|mb)\b", " ", name)
    return " ".join(word for word in name.split() if not NOISE.fullmatch(word))


def capability(name: str) -> str | None:
    for family in load("gpus")["family"]:
        if key(name) in map(key, family["names"]):
            return str(family["compute_capability"])
    return None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # As drivers report them.
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA GeForce RTX 5060", "12.0"),
        ("NVIDIA GeForce RTX 5060 Laptop GPU", "12.0"),
        ("NVIDIA GeForce RTX 5060 Ti", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("NVIDIA RTX PRO 4000 Blackwell SFF Edition", "12.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        ("NVIDIA B200", "10.0"),
        ("NVIDIA GB200", "10.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 PCIe", "9.0"),
        ("NVIDIA H100 NVL", "9.0"),
        ("NVIDIA H200", "9.0"),
        ("NVIDIA H20", "9.0"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("NVIDIA GH200 144G HBM3e", "9.0"),
        ("NVIDIA L4", "8.9"),
        ("NVIDIA L40S", "8.9"),
        ("NVIDIA L40S-48Q", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
        ("NVIDIA RTX 2000 Ada Generation Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 3060", "8.6"),
        ("NVIDIA GeForce RTX 3070", "8.6"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("NVIDIA GeForce RTX 2050", "8.6"),
        ("NVIDIA RTX A6000", "8.6"),
        ("NVIDIA RTX A2000 12GB", "8.6"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "8.0"),
        ("NVIDIA A100-PCIE-40GB", "8.0"),
        ("NVIDIA A100 80GB PCIe", "8.0"),
        ("GRID A100-20C", "8.0"),
        ("GRID A100-3-20C", "8.0"),
        ("NVIDIA A800-SXM4-80GB", "8.0"),
        ("Tesla T4", "7.5"),
        ("NVIDIA T4", "7.5"),
        ("NVIDIA T1000 8GB", "7.5"),
        ("NVIDIA GeForce GTX 1660 SUPER", "7.5"),
        ("GeForce RTX 2080 with Max-Q Design", "7.5"),
        ("GeForce RTX 2080 Super with Max-Q Design", "7.5"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA TITAN RTX", "7.5"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("Tesla V100S-PCIE-32GB", "7.0"),
        ("NVIDIA TITAN V", "7.0"),
        ("TITAN Xp", "6.1"),
        ("GeForce GTX 1060 6GB", "6.1"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("Tesla P40", "6.1"),
        ("Tesla P100-PCIE-16GB", "6.0"),
        ("GeForce GTX TITAN X", "5.2"),
        ("NVIDIA GeForce GTX 750 Ti", "5.0"),
        ("Tesla K80", "3.7"),
        ("Tesla K40m", "3.5"),
        # Not known, or one name for several chips.
        ("NVIDIA Graphics Device", None),
        ("NVIDIA GeForce GTX 860M", None),
        ("NVIDIA GeForce RTX 9090", None),
        ("Quadro M5000M", None),
        ("", None),
    ],
)
def test_a_driver_s_name_has_its_capability(name: str, expected: str | None) -> None:
    assert capability(name) == expected


def test_a_name_stands_once() -> None:
    keys = [key(name) for family in load("gpus")["family"] for name in family["names"]]
    assert all(keys)
    assert sorted(keys) == sorted(set(keys))


# Distributions


def test_distributions_have_canonical_names_and_stand_once() -> None:
    data = load("distributions")
    for table in ("owner", "dependent"):
        names = [row["name"] for row in data[table]]
        assert names == [canonicalize_name(name) for name in names]
        assert len(names) == len(set(names)), table
    folders = [row["folder"] for row in data["shared"]]
    assert len(folders) == len(set(folders))


def test_the_two_builds_that_everybody_mixes_are_told_apart() -> None:
    kinds = {row["name"]: row["kind"] for row in load("distributions")["owner"]}
    assert kinds["onnxruntime"] == "cpu"
    assert kinds["onnxruntime-gpu"] == "gpu"
    assert kinds["onnxruntime-directml"] == "directml"
    assert "onnxruntime-genai" not in kinds  # it has a folder of its own


def test_a_dependent_does_not_own_the_folder() -> None:
    data = load("distributions")
    owners = {row["name"] for row in data["owner"]}
    assert not owners & {row["name"] for row in data["dependent"]}


@pytest.mark.parametrize(
    ("folder", "library"),
    [
        # Seen in the RECORD of real wheels of two CUDA majors.
        ("nvidia/cudnn", "libcudnn"),
        ("nvidia/curand", "libcurand.so.10"),
        ("nvidia/cusolver", "libcusolver.so.11"),
        ("nvidia/nccl", "libnccl.so.2"),
    ],
)
def test_libraries_of_one_name_in_two_wheels_are_known(folder: str, library: str) -> None:
    shared = {row["folder"]: row for row in load("distributions")["shared"]}
    assert any(library in name for name in shared[folder]["files"])


def test_a_library_with_the_cuda_major_in_its_name_collides_with_nothing() -> None:
    shared = {row["folder"]: row for row in load("distributions")["shared"]}
    for folder in ("nvidia/cublas", "nvidia/cuda_runtime", "nvidia/cufft", "nvidia/cuda_nvrtc"):
        assert shared[folder]["files"] == []
