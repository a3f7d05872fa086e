"""What undoes a fix is seen, and mended in one run: real environments, pip and uv, small wheels.

The machine and its matrix are invented; everything else is what a user runs.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from environments import require_ensurepip

import synthetic
from ortgpu_fix.apply.apply_plan import apply
from ortgpu_fix.companions import build as companion_wheels
from ortgpu_fix.facts.target import in_environment
from ortgpu_fix.index.client import Index
from ortgpu_fix.index.config import IndexConfig
from ortgpu_fix.matrix import load as data_files
from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.utils.process import run
from ortgpu_fix.utils.progress import silent
from ortgpu_fix.uv.program import Uv
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import COMMON, Venv, clean_environment, find_uv, make_venv

ABI = f"cp{sys.version_info[0]}{sys.version_info[1]}"
GPU = "onnxruntime-gpu"
TORCH = {
    "2.10.0": ["nvidia-cublas-cu12==12.8.4", "nvidia-cudnn-cu12==9.10.2"],
    "2.12.0": ["nvidia-cublas==13.0.2", "nvidia-cudnn-cu13==9.12.0"],
}


def ort(name: str, version: str) -> dict[str, str | bytes]:
    about = f"package_name = '{name}'\n__version__ = '{version}'\n"
    files = {**COMMON, "onnxruntime/capi/build_and_package_info.py": about}
    if name == GPU:
        files["onnxruntime/capi/libonnxruntime_providers_cuda.so"] = version.encode() * 9000
    return files


def make_matrix(folder: Path) -> Matrix:
    """Write a wheel for every row of the invented tables, and return the matrix of these."""
    tables = synthetic.tables()

    def real(row: dict[str, Any], path: Path) -> None:
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        row |= {"file": path.name, "size": len(data), "sha256": digest}

    for build in tables["onnxruntime"]["build"]:
        if build["platform"] == synthetic.LINUX:
            files, requires = ort(GPU, build["version"]), build["requires"]
            path = make_wheel(folder, GPU, build["version"], files=files, requires=requires)
            build["wheels"] = [{**build["wheels"][0], "python": ABI}]
            real(build["wheels"][0], path)
    for kind in tables["nvidia"]["distribution"]:
        paths = [path for row in kind["files"] for path in row["libraries"].values()]
        for row in kind["releases"]:
            # cuDNN's libraries for CUDA 12 and 13 are never of one size, and none of these is.
            content = f"{kind['name']} {row['version']}".encode() * (500 + int(kind["cuda"]))
            name, version, requires = kind["name"], row["version"], row["requires"]
            made = dict.fromkeys(paths, content)
            real(row, make_wheel(folder, name, version, files=made, requires=requires))
    return matrix_parse.parse(tables, "sha256:invented", data_files.companion_modules())


class Stage:
    """A machine with a GPU, an environment on it, and an index."""

    def __init__(self, folder: Path, index: LocalIndex, known: Matrix, engine: str) -> None:
        self.index, self.known, self.engine, self.folder = index, known, engine, folder
        self.venv: Venv = make_venv(folder / "venv", pip=engine == "pip")

    def user(self, *words: str) -> None:
        """Do what a user does, with the installer of this stage."""
        python = str(self.venv.python)
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if self.engine == "uv":
            command = [find_uv(), "pip", "install", "-q", "--python", python]
            command += ["--link-mode", "copy"]
        command += ["--index-url", self.index.url, *words]
        subprocess.run(command, check=True, env=clean_environment())

    def plan(self) -> Plan:
        """Return the plan for what is there."""
        target = self.venv.target()
        facts = in_environment(synthetic.facts(driver="13.0", gpus=("8.0",)), target, None)
        return resolve(facts, PlanOptions(), self.known)

    def mend(self, plan: Plan) -> None:
        """Apply a plan; whether the libraries work is not asked of stand-ins."""
        names = {row.name for row in plan.companions}
        made = companion_wheels.build_companions(
            plan.selection, self.known, synthetic.LINUX, data_files.companion_modules()
        )
        apply(
            plan,
            self.venv.target(),
            index=Index(IndexConfig(index_url=self.index.url, origin="flag")),
            uv=Uv(program=find_uv(), version="0", environ=clean_environment(), runner=run),
            verify=lambda: (True, ""),
            progress=silent,
            companions=[wheel for wheel in made if wheel.name in names],
        )

    def folder_holds(self) -> tuple[str | None, str | None]:
        """Return whose build is in the folder onnxruntime, and of which version."""
        build = self.venv.target().build
        return (build.distribution, build.version) if build else (None, None)

    def library(self, path: str) -> bytes:
        """Return whose a library is."""
        return (self.venv.site / path).read_bytes()[:40]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalIndex, Matrix]]:
    folder = tmp_path_factory.mktemp("index")
    known = make_matrix(folder)
    for version in ("1.26.0", "1.31.5"):
        make_wheel(folder, "onnxruntime", version, files=ort("onnxruntime", version))
    make_wheel(folder, "fastembed", "0.9.1", requires=["onnxruntime>=1.17"])
    make_wheel(folder, "chromadb", "1.5.0", requires=["onnxruntime>=1.14"])
    for name, version in (("flatbuffers", "25.0"), ("numpy", "2.2.6"), ("protobuf", "6.33.0")):
        make_wheel(folder, name, version)
    for version, requires in TORCH.items():
        make_wheel(folder, "torch", version, files={"torch/a.py": version}, requires=requires)
    with LocalIndex(folder) as index:
        yield index, known


@pytest.fixture
def stage(request: pytest.FixtureRequest, shop: tuple[LocalIndex, Matrix], tmp_path: Path) -> Stage:
    engine = getattr(request, "param", "uv")
    if engine == "pip":
        require_ensurepip()
    return Stage(tmp_path, *shop, engine=engine)


def codes(plan: Plan) -> set[str]:
    return {finding.code for finding in plan.findings if finding.severity != "info"}


def fixed(stage: Stage, *before: str) -> None:
    """Bring the environment into the state after a fix."""
    stage.user("fastembed", "numpy", "flatbuffers", "protobuf", *before)
    stage.mend(stage.plan())

    assert stage.plan().verdict == "healthy"
    assert stage.folder_holds()[0] == GPU


def test_the_next_install_of_a_dependent_changes_nothing(stage: Stage) -> None:
    fixed(stage)
    build = stage.folder_holds()
    stage.user("chromadb")

    assert stage.folder_holds() == build
    assert stage.plan().verdict == "healthy"


@pytest.mark.parametrize(
    "stage", ["uv", pytest.param("pip", marks=pytest.mark.slow)], indirect=True
)
def test_the_cpu_build_that_an_upgrade_brings_is_reported_and_fixed_in_one_run(
    stage: Stage,
) -> None:
    fixed(stage)
    build = stage.folder_holds()
    stage.user("--upgrade", "onnxruntime")
    found = stage.plan()

    assert stage.folder_holds() == ("onnxruntime", "1.31.5")
    assert found.verdict == "fixable"
    assert {"cpu-build-installed", "folder-overwritten"} <= codes(found)
    stage.mend(found)
    assert stage.folder_holds() == build
    assert stage.plan().verdict == "healthy"


def test_a_torch_upgrade_that_changes_the_cuda_major_is_mended_in_one_run(stage: Stage) -> None:
    fixed(stage, "torch==2.10.0")
    before = stage.folder_holds()
    stage.user("--upgrade", "torch")
    found = stage.plan()
    stage.mend(found)

    assert before == (GPU, "1.26.0")
    assert found.verdict == "fixable"
    assert "nvidia-cudnn-cu12" in found.uninstall
    assert stage.folder_holds() == (GPU, "1.31.0")
    assert stage.library("nvidia/cudnn/lib/libcudnn.so.9").startswith(b"nvidia-cudnn-cu13 9.12.0")
    assert stage.plan().verdict == "healthy"


def test_two_cudnns_in_one_folder_are_mended_in_one_run(stage: Stage) -> None:
    stage.user("fastembed", "numpy", "flatbuffers", "protobuf", f"{GPU}==1.26.0")
    stage.user("nvidia-cudnn-cu12==9.28.0", "nvidia-cublas-cu12==12.8.4")
    stage.user("nvidia-cudnn-cu13==9.28.0")
    found = stage.plan()
    stage.mend(found)

    assert found.verdict == "fixable"
    assert "nvidia-cudnn-cu13" in found.uninstall
    assert "shared-folder" in codes(found)
    assert stage.library("nvidia/cudnn/lib/libcudnn.so.9").startswith(b"nvidia-cudnn-cu12 9.28.0")
    assert stage.plan().verdict == "healthy"
