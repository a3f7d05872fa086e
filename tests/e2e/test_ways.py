"""What real wheels bring that is not onnxruntime-gpu: planned as what it is, and left whole.

Nothing is made up but the driver and the GPU, which are options of the plan. Nothing is applied.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environments
import pytest

from support.prover import Prover, call
from support.pythons import find_python

pytestmark = [*environments.REAL_WHEELS, pytest.mark.timeout(600)]
OLD = ("535.104.12", "8.0")
GH200 = {
    "driver": {"version": "570.86.15", "cuda": "12.8"},
    "gpus": [{"name": "NVIDIA GH200 480GB", "compute_capability": "9.0"}],
}


@pytest.fixture
def prover(tmp_path: Path) -> Iterator[Prover]:
    yield Prover(tmp_path, keep=False)
    shutil.rmtree(tmp_path, ignore_errors=True)


def environment(prover: Prover, *packages: str, options: tuple[str, ...] = ()) -> Path:
    prover.uv("venv", "--python", find_python("3.11") or "", prover.work / "env")
    python = prover.work / "env/bin/python"
    prover.uv("pip", "install", *options, "--python", python, "numpy<2", *packages)
    return python


def run(prover: Prover, *words: str | Path) -> dict[str, Any]:
    program = Path(sys.executable).with_name("ortgpu-fix")
    done = call(program, *words, "--json", check=False, environ=prover.environ)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def plan(prover: Prover, python: Path, machine: tuple[str, str]) -> dict[str, Any]:
    """Return the plan for an environment on a machine whose system has no library of CUDA."""
    driver, gpu = machine
    described = {
        "driver": {"version": driver, "cuda": None, "error": None},
        "gpus": [{"name": None, "compute_capability": gpu, "memory_mib": None}],
        "toolkits": [],
        "libraries": [],
    }
    file = prover.work / "described.json"
    file.write_text(json.dumps(run(prover, "facts", "--python", python) | described))
    return run(prover, "--facts", file)


def names(planned: dict[str, Any]) -> set[str]:
    return {row["name"] for row in planned["install"]}


def test_the_training_build_gets_its_libraries_of_cuda_11(prover: Prover) -> None:
    """The only training API that there is was removed without a word."""
    planned = plan(prover, environment(prover, "onnxruntime-training==1.19.2"), OLD)

    assert planned["uninstall"] == []
    assert "onnxruntime-gpu" not in names(planned)
    assert {
        *("nvidia-cublas-cu11", "nvidia-cudnn-cu11", "nvidia-cufft-cu11", "nvidia-curand-cu11"),
        "nvidia-cuda-runtime-cu11",
    } <= names(planned)


def test_a_build_of_another_name_is_told_by_its_own(prover: Prover) -> None:
    """On a GH200 with driver 570 it was said to share its folder with a build that is not there."""
    arm = ("--python-platform", "aarch64-manylinux_2_39", "--no-deps")
    python = environment(prover, "onnxruntime-gpu-extended==1.23.2.12.9", options=arm)
    facts = run(prover, "facts", "--python", python)
    platform = {"system": "linux", "machine": "aarch64", "libc": "glibc 2.39"}

    def planned_with(**machine: Any) -> dict[str, Any]:
        file = prover.work / "host.json"
        file.write_text(json.dumps(facts | {"platform": platform} | GH200 | machine))
        return run(prover, "--facts", file)

    planned = planned_with()
    [rejected] = [
        row for row in planned["rejected"] if row["package"] == "onnxruntime-gpu-extended"
    ]
    orin = planned_with(gpus=[{"name": "Orin", "compute_capability": "8.7"}])

    assert planned["verdict"] == "impossible"
    assert [row["code"] for row in rejected["reasons"]] == ["no-gpu-code"]
    assert "shared-folder" not in {row["code"] for row in planned["findings"]}
    assert (orin["verdict"], orin["uninstall"]) == ("fixable", [])
