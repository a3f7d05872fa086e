"""What `explain` ends with is run, in an environment that has the cause: afterwards it is gone.

Failures of each kind that `--apply` can mend are planted. The environment, uv, the wheels' files,
the plan and the change are real; the wheels are stand-ins without a library in them, so the
inference that an apply ends with is left out. The machine (driver, GPUs) is that of a facts file.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import run_here
from packaging.requirements import Requirement
from stand import Stand
from standins import make_standin, with_standins

from ortgpu_fix.cli import inputs
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.verify.verification import Verification
from support.local_index import make_wheel
from support.standin_wheels import as_wheel, clean_environment

MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: {}: cannot open shared"
    " object file: No such file or directory\n"
)
A100 = {"driver": ("535.104.12", "12.2"), "gpu": "8.0"}
NEW = {"driver": ("580.95.05", "13.0"), "gpu": "8.9"}
GPU_BUILD = "onnxruntime-gpu 1.26.0"


class Case(NamedTuple):
    """A failure: what is installed, on which machine, and the log of it."""

    code: str
    log: str
    installed: tuple[str, ...]
    machine: dict[str, Any] = A100
    remove: tuple[str, ...] = ()
    """Files that are taken away afterwards."""
    command: str = ""
    """Another one of the commands that are named; else what `explain` ends with."""
    gone: tuple[str, ...] = ()
    """What is not in the environment afterwards."""
    before: str = "confirmed"
    after: str = "not-so"
    """What the machine says of the log once it is mended; `unseen` where no machine shows it."""


CASES = {
    "the CPU build": Case(
        "cpu-build-in-use",
        "['AzureExecutionProvider', 'CPUExecutionProvider']\n",
        ("onnxruntime 1.22.1",),
        gone=("onnxruntime 1.22.1",),
    ),
    "a build for DirectML": Case(
        "other-build-in-use",
        "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider"
        " names.Available providers: 'DmlExecutionProvider, CPUExecutionProvider'\n",
        (GPU_BUILD, "onnxruntime-directml 1.24.4"),
        gone=("onnxruntime-directml 1.24.4",),
    ),
    "one taken away": Case(
        "package-gutted",
        "AttributeError: module 'onnxruntime' has no attribute 'InferenceSession'\n",
        (GPU_BUILD, "onnxruntime 1.22.1"),
        remove=("onnxruntime/__init__.py", "onnxruntime/capi/build_and_package_info.py"),
    ),
    "no cuDNN": Case("cudnn-9-missing", MISSING.format("libcudnn.so.9"), (GPU_BUILD,)),
    "no part of cuDNN": Case(
        "cudnn-parts-missing",
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot"
        " open shared object file: No such file or directory\n",
        ("onnxruntime-gpu 1.18.1",),
    ),
    "a build that is too new for the driver": Case(
        "driver-too-old",
        "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0\n",
        ("onnxruntime-gpu 1.31.1",),
        gone=("onnxruntime-gpu 1.31.1",),
    ),
    "TensorRT is missing": Case(
        "tensorrt-cpu-fallback",
        "onnxruntime 1.22.0\nEP Error when using ['TensorrtExecutionProvider',"
        " 'CUDAExecutionProvider']\nFailed to load library"
        " libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10: cannot open shared"
        " object file: No such file or directory\nFalling back to ['CPUExecutionProvider']\n",
        ("onnxruntime-gpu 1.22.0",),
        gone=("onnxruntime-gpu 1.22.0",),
    ),
    "numpy is too new": Case(
        "numpy-too-new",
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.2.6 as it may crash."
        " onnxruntime\n",
        ("onnxruntime-gpu 1.18.1", "numpy 2.2.6"),
        gone=("numpy 2.2.6",),
    ),
    "torch of another CUDA, matched": Case(
        "torch-cuda-differs",
        "WARNING: The installed PyTorch 2.8.0+cu128 uses CUDA 12.x, but onnxruntime-gpu is built"
        " with CUDA 13.x.\n",
        ("onnxruntime-gpu 1.31.1", "torch 2.8.0+cu128"),
        NEW,
        command="ortgpu-fix --torch match --apply",
        gone=("onnxruntime-gpu 1.31.1",),
    ),
    "a release that the mirror lacks": Case(
        "no-wheel",
        "ERROR: No matching distribution found for onnxruntime-gpu==1.26.0\n",
        (),
        command="ortgpu-fix --index-url https://pypi.org/simple --apply",
        before="not-so",
    ),
}
QUICK = ("the CPU build", "no part of cuDNN")


def plant(stand: Stand, case: Case, folder: Path) -> None:
    """Install what the case has, in its order, and take away what it lacks."""
    for one in case.installed:
        stand.venv.install(make_standin(folder, *one.split()))
    for path in case.remove:
        (stand.venv.site / path).unlink()


def facts_of(case: Case, version: str) -> str:
    """Return the machine as a facts file."""
    release, cuda = case.machine["driver"]
    gpu = {"name": "a GPU", "compute_capability": case.machine["gpu"], "memory_mib": 40000}
    document = {
        "schema": 1,
        "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.35"},
        "driver": {"version": release, "cuda": cuda, "error": None},
        "gpus": [gpu],
        "python": {"version": version},
        "packages": [],
    }
    return json.dumps(document)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_the_command_that_is_named_mends_it(
    name: str, stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    if name.startswith("numpy is too") and sys.version_info >= (3, 13):
        pytest.skip("needs Python 3.12 or older, which has such a numpy beside such a release")
    old, made, home, temporary = (tmp_path / part for part in ("old", "made", "home", "tmp"))
    for path in (old, made, home, temporary):
        path.mkdir()
    plant(stand, case, old)
    machine = tmp_path / "machine.json"
    machine.write_text(facts_of(case, stand.venv.target().version), "utf-8")
    monkeypatch.setattr(changing, "verify", lambda *_, **__: Verification(verdict="works"))
    environ = clean_environment() | {"HOME": str(home), "LANG": "C.UTF-8"}
    environ |= {"TMPDIR": str(temporary)}

    def command(*argv: str, text_in: str = "") -> subprocess.CompletedProcess[str]:
        return run_here(*argv, cwd=home, env=environ, text_in=text_in)

    flags = ["--facts", str(machine), "--python", str(stand.venv.folder)]
    flags += ["--find-links", str(made), "--offline"]

    def explain() -> dict[str, Any]:
        done = command("explain", *flags, "--json", text_in=case.log)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    before = explain()
    (row,) = before["explanations"]
    assert (row["code"], row["fixable"]) == (case.code, True)
    assert row["here"]["state"] == case.before
    words = shlex.split(before["mending"]["command"])
    if case.command:
        assert case.command in row["commands"]
        words = ["ortgpu-fix", *flags, *shlex.split(case.command)[1:]]
    assert (words[0], words[-1]) == ("ortgpu-fix", "--apply")
    plan = json.loads(command(*words[1:-1], "--json").stdout)
    stand_in(plan, made, monkeypatch)
    done = command(*words[1:], "--yes", "--json")
    after = explain()

    assert plan["verdict"] == "fixable"
    assert done.returncode == 0, done.stdout + done.stderr
    here = {f"{one.key} {one.version}" for one in stand.venv.target().installed}
    assert not here & set(case.gone)
    assert [each["here"]["state"] for each in after["explanations"]] == [case.after]
    assert shlex.split(after["mending"]["command"])[-1] == "verify"


def stand_in(plan: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stand-in for every wheel that a plan installs, and let the tables know them."""
    wheels: dict[tuple[str, str], Wheel] = {}
    for row in plan["install"]:
        if row["index"] != "here":
            path = make_standin(folder, row["name"], row["version"])
            wheels[row["name"], row["version"]] = as_wheel(path)
    for requirement in map(Requirement, plan["requires"]):
        version = next(each for each in ("99", "1.26.4") if each in requirement.specifier)
        make_wheel(folder, requirement.name, version)
    load: Callable[..., Matrix] = partial(with_standins, wheels=wheels)
    monkeypatch.setattr(inputs, "load_matrix", lambda **more: load(load_matrix(**more)))
