"""The real program on a real environment that holds what no matrix knows yet."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drivers import Card
from environments import put, put_onnxruntime, site_packages

L4 = Card(name="NVIDIA L4", capability=(8, 9), memory_mib=23034)
NEWER = {
    "nvidia-cublas": ("13.11.0.7", ("cu13/lib/libcublas.so.13", "cu13/lib/libcublasLt.so.13")),
    "nvidia-cuda-nvrtc": ("13.6.12", ("cu13/lib/libnvrtc.so.13",)),
    "nvidia-cuda-runtime": ("13.6.12", ("cu13/lib/libcudart.so.13",)),
    "nvidia-cudnn-cu13": ("9.29.0.10", ("cudnn/lib/libcudnn.so.9",)),
    "nvidia-cufft": ("12.6.0.9", ("cu13/lib/libcufft.so.12",)),
    "nvidia-curand": ("10.4.6.3", ("cu13/lib/libcurand.so.10",)),
    "nvidia-nvjitlink": ("13.6.12", ("cu13/lib/libnvJitLink.so.13",)),
}
ORDINARY = {"flatbuffers": "25.2.10", "numpy": "2.2.6", "packaging": "25.0", "protobuf": "6.31.1"}
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(simulate: Callable[..., dict[str, str]], venv: Path) -> Run:
    """Return what runs the program on `venv`, beside a driver for CUDA 13.0 and an L4."""
    environ = simulate(release="580.82.07", cuda=13000, cards=[L4])

    def command(*argv: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "ortgpu_fix", "--python", str(venv), *argv]
        return subprocess.run(program, env=environ, capture_output=True, text=True, check=False)

    return command


def fill(venv: Path, run: Run, release: str) -> dict[str, Any]:
    """Put the newer wheels there, and the companions of the plan; return the plan before them."""
    site = site_packages(venv)
    for name, (version, libraries) in NEWER.items():
        put(site, name, version, files={f"nvidia/{path}": b"code" for path in libraries})
    for name, version in ORDINARY.items():
        put(site, name, version)
    put_onnxruntime(site, version=release, cuda="13.0")
    before: dict[str, Any] = json.loads(run("--json").stdout)
    for companion in before["companions"]:
        provided = {"ORTGPU_FIX_PROVIDED": ""} if companion["name"] == "onnxruntime" else None
        put(site, companion["name"], companion["version"], extra=provided)
    return before


@pytest.mark.parametrize("release", ["1.31.1", "1.32.0"])
def test_a_healthy_environment_of_newer_wheels_is_healthy(
    release: str, venv: Path, run: Run
) -> None:
    fill(venv, run, release)

    checked = run("--check")

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    made = json.loads(run("--json").stdout)
    assert made["verdict"] == "healthy"
    assert made["install"] == []
    assert "unknown-release" in {row["code"] for row in made["findings"]}


def test_what_was_seen_travels_in_the_facts(tmp_path: Path, venv: Path, run: Run) -> None:
    """A plan made elsewhere from the facts is the same."""
    fill(venv, run, "1.31.1")
    facts = tmp_path / "facts.json"
    run("facts", "-o", str(facts))

    packages = {row["name"]: row for row in json.loads(facts.read_text())["packages"]}
    assert packages["nvidia-cudnn-cu13"]["libraries"] == ["nvidia/cudnn/lib/libcudnn.so.9"]
    here = json.loads(run("--json").stdout)
    argv = [sys.executable, "-m", "ortgpu_fix", "--facts", str(facts), "--json"]
    elsewhere = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert json.loads(elsewhere.stdout)["selection"] == here["selection"]


def test_a_newer_wheel_without_a_library_that_is_needed_is_wrong(venv: Path, run: Run) -> None:
    fill(venv, run, "1.31.1")
    site = site_packages(venv)
    record = next(site.glob("nvidia_cublas-*.dist-info")) / "RECORD"
    lines = [line for line in record.read_text().splitlines() if "cublasLt" not in line]
    record.write_text("\n".join(lines) + "\n")

    assert run("--check").returncode == 1
