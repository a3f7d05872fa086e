"""The real program on a real environment that holds what no matrix knows yet."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from drivers import Card
from environments import put, put_onnxruntime, site_packages

from ortgpu_fix import __main__
from ortgpu_fix.cli.machine import with_unknown_releases
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.facts.model import Provider
from ortgpu_fix.facts.target import Installed, Target, in_environment
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.probe import provider as provider_module
from ortgpu_fix.probe.machine import target_of
from ortgpu_fix.utils import process

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
def environ(simulate: Callable[..., dict[str, str]]) -> dict[str, str]:
    """Return the environment of a machine with a driver for CUDA 13.0 and an L4."""
    return simulate(release="580.82.07", cuda=13000, cards=[L4])


@pytest.fixture
def run(environ: dict[str, str], venv: Path) -> Run:
    """Return what runs the program on `venv`."""

    def command(*argv: str) -> subprocess.CompletedProcess[str]:
        return run_here("--python", str(venv), *argv, cwd=venv.parent, env=environ)

    return command


def fill(
    venv: Path, run: Run, release: str, versions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Put the newer wheels there, and the companions of the plan; return the plan before them."""
    site = site_packages(venv)
    for name, (newer, libraries) in NEWER.items():
        version = (versions or {}).get(name, newer)
        put(site, name, version, files={f"nvidia/{path}": b"code" for path in libraries})
    for name, version in ORDINARY.items():
        put(site, name, version)
    put_onnxruntime(site, version=release, cuda="13.0")
    before: dict[str, Any] = json.loads(run("--json").stdout)
    for companion in before["companions"]:
        provided = {"ORTGPU_FIX_PROVIDED": ""} if companion["name"] == "onnxruntime" else None
        put(site, companion["name"], companion["version"], extra=provided)
    return before


def test_a_healthy_environment_of_newer_wheels_is_healthy(venv: Path, run: Run) -> None:
    fill(venv, run, "1.32.0")

    checked = run("--check")

    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("OK: ")
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
    elsewhere = run_here("--facts", str(facts), "--json", cwd=tmp_path, env={})
    assert json.loads(elsewhere.stdout)["selection"] == here["selection"]


def test_the_environment_is_not_searched_once_for_each_distribution(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 1,000 of them that was half of what `--check` took."""
    for number in range(5):
        put(site_packages(venv), f"package-{number}", "1.0")
    asked, find = [], Target.find

    def noted(target: Target, name: str) -> Installed | None:
        asked.append(name)
        return find(target, name)

    monkeypatch.setattr(Target, "find", noted)
    __main__.main(["--check", "--python", str(venv), "--driver", "580.82.07", "--gpu", "8.9"])

    assert asked
    assert not any(name.startswith("package-") for name in asked)


def test_a_plugin_that_no_matrix_knows_is_read_where_it_is(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = "onnxruntime-ep-nv-tensorrt-rtx-cu13"
    for name in ("onnxruntime-ep-new", "onnxruntime-ep-cuda13", known):
        put(site_packages(venv), name, "1.0")
    read = Provider(links=("libcudart.so.13",))
    monkeypatch.setattr(provider_module, "read_plugin", lambda *_: read)
    target = target_of(str(venv), environ={}, cwd=Path("/"), runner=process.run)
    facts = in_environment(from_json(example_machine()), target)
    gone = next(row for row in facts.packages if row.name == "onnxruntime-ep-new")
    gone = gone._replace(name="onnxruntime-ep-gone")
    facts = facts._replace(packages=(*facts.packages, gone))

    found = with_unknown_releases(facts, target, load_matrix(torch=False)).packages

    plugins = {row.name: row.provider for row in found if row.name.startswith("onnxruntime-ep")}
    unread = {known: None, "onnxruntime-ep-gone": None}
    assert plugins == {"onnxruntime-ep-new": read, "onnxruntime-ep-cuda13": read, **unread}


def test_a_build_that_no_table_names_is_read_as_well(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_onnxruntime(site_packages(venv), "Onnxruntime_Ours", "1.22.0")
    read = Provider(links=("libcudart.so.12",))
    monkeypatch.setattr(provider_module, "read_provider", lambda _: read)
    target = target_of(str(venv), environ={}, cwd=Path("/"), runner=process.run)
    facts = in_environment(from_json(example_machine()), target)

    found = with_unknown_releases(facts, target, load_matrix(torch=False)).onnxruntime

    assert found is not None
    assert (found.distribution, found.provider) == ("onnxruntime-ours", read)


CURAND = "nvidia/curand/lib/libcurand.so.10"
FIT = "10.3.7.77"


@pytest.mark.parametrize(
    ("version", "listed", "there", "intact"),
    [(FIT, False, False, False), (FIT, False, True, True), ("10.99", False, False, False)],
)
def test_a_wheel_without_a_list_of_its_files_is_whole_where_they_are(
    venv: Path, version: str, *, listed: bool, there: bool, intact: bool
) -> None:
    """cuDNN was gone and the plan said "healthy": without RECORD nothing of it was looked for."""
    site = site_packages(venv)
    info = put(site, "nvidia-curand-cu12", version)
    put(site, "nvidia-ml-py", "13.0")
    if not listed:
        (info / "RECORD").unlink()
    if there:
        (site / CURAND).parent.mkdir(parents=True)
        (site / CURAND).write_bytes(b"curand")
    target = target_of(str(venv), environ={}, cwd=Path("/"), runner=process.run)
    facts = in_environment(from_json(example_machine()), target)
    gone = facts.packages[0]._replace(name="nvidia-cufft-cu12")
    facts = facts._replace(packages=(*facts.packages, gone))

    found = with_unknown_releases(facts, target, load_matrix(torch=False)).packages

    rows = {row.name: row.intact for row in found}
    others = {"nvidia-ml-py": True, "nvidia-cufft-cu12": True}
    assert rows == {"nvidia-curand-cu12": intact, **others}
