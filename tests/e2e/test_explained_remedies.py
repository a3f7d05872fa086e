"""What `explain` ends with is run, in an environment that has the cause: afterwards it is gone.

The environment, uv, the wheels' files and the change are real; the wheels are stand-ins without a
library in them, so the inference that an apply ends with is left out.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from packaging.requirements import Requirement
from stand import Stand

from ortgpu_fix.cli import inputs
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.data_files import example_machine
from ortgpu_fix.facts.document import from_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve
from ortgpu_fix.utils.process import install_environment
from ortgpu_fix.verify.model import Verification
from support.local_index import make_wheel
from support.standin_wheels import as_wheel

LIBRARY = "Failed to load library libonnxruntime_providers_cuda.so with error: {}: cannot open"
LIBRARY += " shared object file: No such file or directory\n"
ABOUT = "package_name = '{}'\n__version__ = '{}'\n"
GPU, CPU = "onnxruntime-gpu", "onnxruntime"


def build(folder: Path, name: str, version: str) -> Path:
    """Write the stand-in of a build of onnxruntime."""
    files: dict[str, str | bytes] = {
        "onnxruntime/__init__.py": f"# {name}",
        "onnxruntime/capi/build_and_package_info.py": ABOUT.format(name, version),
    }
    return make_wheel(folder, name, version, files=files)


@pytest.fixture
def folder(quick: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stand-ins for all that the plan for the example machine installs.

    The tables know them by their own names and hashes in place of the real ones.
    """
    made = tmp_path / "wheels"
    made.mkdir()
    matrix = load_matrix()
    example = from_json(example_machine())._replace(packages=(), onnxruntime=None)
    version = ".".join(quick.venv.target().version.split(".")[:2])
    python = example.python._replace(version=f"{version}.0")
    plan = resolve(example._replace(python=python), PlanOptions(), matrix)
    wheels: dict[str, Wheel] = {}
    for wheel in plan.selection:
        path = (
            build(made, wheel.name, wheel.version)
            if wheel.name == GPU
            else make_wheel(made, wheel.name, wheel.version)
        )
        wheels[wheel.file] = as_wheel(path)
    for line in plan.requires:
        make_wheel(made, Requirement(line).name, "99")

    def known(row: Any) -> Any:
        wheel = wheels.get(row.file)
        return row._replace(file=wheel.file, size=wheel.size, sha256=wheel.sha256) if wheel else row

    builds = tuple(one._replace(wheels=tuple(map(known, one.wheels))) for one in matrix.builds)
    distributions = {
        name: one._replace(releases=tuple(map(known, one.releases)))
        for name, one in matrix.distributions.items()
    }
    changed = matrix._replace(builds=builds, distributions=distributions)
    monkeypatch.setattr(inputs, "load_matrix", lambda **_: changed)
    return made


def plant_cpu(stand: Stand, old: Path) -> None:
    stand.venv.install(build(old, CPU, "1.22.1"))


def plant_both(stand: Stand, old: Path) -> None:
    stand.venv.install(build(old, GPU, "1.26.0"))
    stand.venv.install(build(old, CPU, "1.22.1"))


def plant_gutted(stand: Stand, old: Path) -> None:
    """Take the CPU build away where both wrote into one folder."""
    plant_both(stand, old)
    (stand.venv.site / "onnxruntime/__init__.py").unlink()
    (stand.venv.site / "onnxruntime/capi/build_and_package_info.py").unlink()


def plant_bare(stand: Stand, old: Path) -> None:
    """Install the build as `pip install onnxruntime-gpu` does: without a library."""
    stand.venv.install(build(old, GPU, "1.26.0"))


def plant_old_libraries(stand: Stand, old: Path) -> None:
    plant_bare(stand, old)
    stand.venv.install(make_wheel(old, "nvidia-cudnn-cu12", "8.9.7.29"))


CASES: dict[str, tuple[Callable[[Stand, Path], None], str, str]] = {
    "the CPU build": (plant_cpu, "['AzureExecutionProvider', 'CPUExecutionProvider']\n", ""),
    "both builds": (plant_both, "['AzureExecutionProvider', 'CPUExecutionProvider']\n", ""),
    "one taken away": (
        plant_gutted,
        "AttributeError: module 'onnxruntime' has no attribute 'InferenceSession'\n",
        "",
    ),
    "no cuDNN": (plant_bare, LIBRARY.format("libcudnn.so.9"), "cudnn-9-missing"),
    "no cuBLAS": (plant_bare, LIBRARY.format("libcublasLt.so.12"), "cuda-12-libraries-missing"),
    "an old cuDNN": (plant_old_libraries, LIBRARY.format("libcudnn.so.9"), "cudnn-9-missing"),
}


QUICK = ("the CPU build", "no cuDNN")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_the_command_that_is_named_mends_it(
    name: str, quick: Stand, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, log, code = CASES[name]
    old, home, temporary = (tmp_path / part for part in ("old", "home", "temporary"))
    for path in (old, home, temporary):
        path.mkdir()
    plant(quick, old)
    monkeypatch.setattr(changing, "verify", lambda *_, **__: Verification(verdict="works"))
    environ = install_environment(os.environ) | {"HOME": str(home), "LANG": "C.UTF-8"}
    environ |= {"TMPDIR": str(temporary)}

    def command(*argv: str, text_in: str = "") -> subprocess.CompletedProcess[str]:
        return run_here(*argv, cwd=home, env=environ, text_in=text_in)

    def explain() -> dict[str, Any]:
        flags = ["--facts", "example", "--python", str(quick.venv.folder)]
        flags += ["--find-links", str(folder), "--offline", "--json"]
        done = command("explain", *flags, text_in=log)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    before = explain()
    (row,) = before["explanations"]
    words = shlex.split(before["mending"]["command"])
    done = command(*words[1:], "--yes", "--json")
    after = explain()

    assert row["code"] == code or not code
    assert row["fixable"]
    assert row["here"]["state"] == "confirmed"
    assert (words[0], words[-1]) == ("ortgpu-fix", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["here"]["state"] for each in after["explanations"]] == ["not-so"]
    assert shlex.split(after["mending"]["command"])[-1] == "verify"
