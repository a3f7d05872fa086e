"""What `explain` ends with is run, in an environment that has the cause: afterwards it is gone.

Every failure that `--apply` can mend is planted. The environment, uv, the wheels' files, the plan
and the change are real; the wheels are stand-ins without a library in them, so the inference that
an apply ends with is left out. The machine (driver, GPUs) is that of a facts file.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import run_here
from packaging.requirements import Requirement
from stand import Stand

from ortgpu_fix.cli import inputs
from ortgpu_fix.cli.commands import apply as changing
from ortgpu_fix.data_files import load_table
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import Matrix
from ortgpu_fix.plan.wheels import Wheel
from ortgpu_fix.utils.process import install_environment
from ortgpu_fix.verify.model import Verification
from support.local_index import make_wheel
from support.standin_wheels import as_wheel

ABOUT = "package_name = '{}'\n__version__ = '{}'\n"
MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: {}: cannot open shared"
    " object file: No such file or directory\n"
)
A100 = {"driver": ("535.104.12", "12.2"), "gpu": "8.0"}
NEW = {"driver": ("580.95.05", "13.0"), "gpu": "8.9"}
V100 = {"driver": ("580.95.05", "13.0"), "gpu": "7.0"}
RTX5090 = {"driver": ("580.95.05", "13.0"), "gpu": "12.0"}
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
    "both builds": Case(
        "cpu-build-in-use",
        "['AzureExecutionProvider', 'CPUExecutionProvider']\n",
        (GPU_BUILD, "onnxruntime 1.22.1"),
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
    "a provider's file taken away": Case(
        "provider-files-missing",
        MISSING.format("libonnxruntime_providers_shared.so"),
        (GPU_BUILD,),
        remove=("onnxruntime/__init__.py",),
    ),
    "somebody requires the CPU build": Case(
        "cpu-build-required",
        "fastembed 0.9.1 requires onnxruntime, which is not installed.\n",
        (GPU_BUILD, "fastembed 0.9.1"),
    ),
    "no cuDNN": Case("cudnn-9-missing", MISSING.format("libcudnn.so.9"), (GPU_BUILD,)),
    "no cuBLAS": Case(
        "cuda-12-libraries-missing", MISSING.format("libcublasLt.so.12"), (GPU_BUILD,)
    ),
    "an old cuDNN": Case(
        "cudnn-9-missing",
        MISSING.format("libcudnn.so.9"),
        (GPU_BUILD, "nvidia-cudnn-cu12 8.9.7.29"),
        gone=("nvidia-cudnn-cu12 8.9.7.29",),
    ),
    "no library of CUDA 11": Case(
        "cuda-11-libraries-missing",
        MISSING.format("libcublasLt.so.11"),
        ("onnxruntime-gpu 1.18.1",),
    ),
    "no library of CUDA 13": Case(
        "cuda-13-libraries-missing",
        MISSING.format("libcublasLt.so.13"),
        ("onnxruntime-gpu 1.31.1",),
        NEW,
    ),
    "no cuDNN 8": Case(
        "cudnn-8-missing", MISSING.format("libcudnn.so.8"), ("onnxruntime-gpu 1.18.1",)
    ),
    "no part of cuDNN": Case(
        "cudnn-parts-missing",
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot"
        " open shared object file: No such file or directory\n",
        ("onnxruntime-gpu 1.18.1",),
    ),
    "no cuRAND": Case("curand-missing", MISSING.format("libcurand.so.10"), (GPU_BUILD,)),
    "no NVRTC": Case("nvrtc-missing", MISSING.format("libnvrtc-builtins.so.12.8"), (GPU_BUILD,)),
    "a library of CUDA 10 in the log": Case(
        "cuda-10-libraries-missing", MISSING.format("libcublas.so.10"), (GPU_BUILD,)
    ),
    "cuDNN of both majors": Case(
        "cudnn-mismatch",
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH\n",
        (GPU_BUILD, "nvidia-cudnn-cu12 9.10.2.21", "nvidia-cudnn-cu13 9.14.0.64"),
        gone=("nvidia-cudnn-cu13 9.14.0.64",),
    ),
    "a library that fails": Case(
        "cuda-library-failed",
        "CUBLAS_STATUS_NOT_INITIALIZED\n",
        (GPU_BUILD, "nvidia-cudnn-cu12 9.10.2.21", "nvidia-cudnn-cu13 9.14.0.64"),
        gone=("nvidia-cudnn-cu13 9.14.0.64",),
    ),
    "cuDNN that is needed late": Case(
        "optional-library-unavailable",
        "cuDNN is not available. Install cuDNN, update the system library search path\n",
        ("onnxruntime-gpu 1.31.1",),
        NEW,
    ),
    "what preload_dlls says": Case(
        "preload-failed",
        "Please follow https://onnxruntime.ai/docs/install/#cuda-and-cudnn to install CUDA.\n",
        ("onnxruntime-gpu 1.31.1",),
        NEW,
    ),
    "the plugin": Case(
        "cuda-plugin-not-registered",
        "UserWarning: Failed to register bundled CUDA plugin EP from /x/libonnxruntime.so: FAIL\n",
        ("onnxruntime-gpu 1.31.1",),
        NEW,
    ),
    "a provider that is not loaded": Case(
        "provider-not-loaded",
        'LoadLibrary failed with error 126 "" when trying to load'
        ' "C:\\x\\onnxruntime_providers_cuda.dll"\n',
        (GPU_BUILD,),
    ),
    "a toolkit and no libraries": Case(
        "cuda-path-set", "CUDA_PATH is set but CUDA wasn't able to be loaded.\n", (GPU_BUILD,)
    ),
    "no provider, and no reason": Case(
        "cuda-provider-not-created", "Failed to create CUDAExecutionProvider.\n", (GPU_BUILD,)
    ),
    "the CPU, and no reason": Case(
        "cpu-fallback",
        "Applied providers: ['CPUExecutionProvider'], with options\n",
        (GPU_BUILD,),
    ),
    "a build that is too new for the driver": Case(
        "driver-too-old",
        "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0\n",
        ("onnxruntime-gpu 1.31.1",),
        gone=("onnxruntime-gpu 1.31.1",),
    ),
    "a build without code for the GPU": Case(
        "no-kernel-image",
        "CUDA failure 209: no kernel image is available for execution on the device\n",
        ("onnxruntime-gpu 1.31.1",),
        V100,
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
    "numpy is too old": Case(
        "numpy-too-old",
        "RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xe\n",
        (GPU_BUILD, "numpy 1.19.5"),
        gone=("numpy 1.19.5",),
        before="unseen",
        after="unseen",
    ),
    "torch of another CUDA": Case(
        "torch-cuda-differs",
        "WARNING: The installed PyTorch 2.8.0+cu128 uses CUDA 12.x, but onnxruntime-gpu is built"
        " with CUDA 13.x.\n",
        ("onnxruntime-gpu 1.31.1", "torch 2.8.0+cu128"),
        NEW,
        gone=("onnxruntime-gpu 1.31.1",),
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
    "torch without this GPU": Case(
        "torch-without-this-gpu",
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current"
        " PyTorch installation.\n",
        (GPU_BUILD, "torch 2.5.1+cu124"),
        RTX5090,
        gone=("torch 2.5.1+cu124",),
    ),
    "an extra that cannot be had": Case(
        "extras-unresolvable",
        'ERROR: No matching distribution found for nvidia-cufft-cu13~=12.0; extra == "cuda"\n',
        (),
        NEW,
        before="unseen",
        after="unseen",
    ),
    "a release that cannot be had": Case(
        "no-wheel",
        "ERROR: No matching distribution found for onnxruntime-gpu==1.16.1\n",
        (),
        before="unseen",
        after="unseen",
    ),
    "Microsoft's feed": Case(
        "feed-refused",
        "User for aiinfra.pkgs.visualstudio.com: \n",
        (),
        before="unseen",
        after="unseen",
    ),
    "a stack that may be run": Case(
        "executable-stack",
        "ImportError: onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so:"
        " cannot enable executable stack as shared object requires: Invalid argument\n",
        ("onnxruntime 1.16.3",),
        gone=("onnxruntime 1.16.3",),
        before="unseen",
        after="unseen",
    ),
}
QUICK = ("the CPU build", "no cuDNN")
NOT_HERE = {"zlibwapi-missing": "what mends it is a file for Windows"}
"""Failures that `--apply` mends and no test here plants, and why."""


def test_every_failure_that_can_be_mended_is_planted() -> None:
    rows: Any = load_table("failures")["failure"]
    fixable = {row["code"] for row in rows if row["fixable"]}

    assert {case.code for case in CASES.values()} | NOT_HERE.keys() == fixable


def make_standin(folder: Path, name: str, version: str) -> Path:
    """Write the stand-in of a wheel: a build of onnxruntime says which it is."""
    files: dict[str, str | bytes] = {}
    requires: tuple[str, ...] = ()
    if name.startswith("onnxruntime"):
        files = {
            "onnxruntime/__init__.py": f"# {name}",
            "onnxruntime/capi/build_and_package_info.py": ABOUT.format(name, version),
        }
    elif name == "torch":
        digits = version.partition("+cu")[2]
        about = f"__version__ = '{version}'\ncuda = '{digits[:-1]}.{digits[-1]}'\n"
        files = {"torch/__init__.py": "", "torch/version.py": about}
    elif name == "fastembed":
        requires = ("onnxruntime>=1.17.0",)
    return make_wheel(folder, name, version, files=files, requires=requires)


def plant(stand: Stand, case: Case, folder: Path) -> None:
    """Install what the case has, in its order, and take away what it lacks."""
    for one in case.installed:
        stand.venv.install(make_standin(folder, *one.split()))
    for path in case.remove:
        (stand.venv.site / path).unlink()


def with_standins(matrix: Matrix, wheels: dict[tuple[str, str], Wheel]) -> Matrix:
    """Return the tables, in which stand-ins have the place of the wheels that they stand for."""

    def known(row: Any, name: str, version: str) -> Any:
        wheel = wheels.get((name, version))
        return row._replace(file=wheel.file, size=wheel.size, sha256=wheel.sha256) if wheel else row

    builds = tuple(
        one._replace(wheels=tuple(known(row, "onnxruntime-gpu", one.version) for row in one.wheels))
        for one in matrix.builds
    )
    distributions = {
        name: one._replace(releases=tuple(known(row, name, row.version) for row in one.releases))
        for name, one in matrix.distributions.items()
    }
    torch = matrix.torch._replace(
        builds=tuple(
            one._replace(wheels=tuple(known(row, "torch", one.version) for row in one.wheels))
            for one in matrix.torch.builds
        )
    )
    numpy = tuple(known(row, "numpy", row.version) for row in matrix.numpy)
    return matrix._replace(builds=builds, distributions=distributions, torch=torch, numpy=numpy)


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
    name: str, quick: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    old, made, home, temporary = (tmp_path / part for part in ("old", "made", "home", "tmp"))
    for path in (old, made, home, temporary):
        path.mkdir()
    plant(quick, case, old)
    machine = tmp_path / "machine.json"
    machine.write_text(facts_of(case, quick.venv.target().version), "utf-8")
    monkeypatch.setattr(changing, "verify", lambda *_, **__: Verification(verdict="works"))
    environ = install_environment(os.environ) | {"HOME": str(home), "LANG": "C.UTF-8"}
    environ |= {"TMPDIR": str(temporary)}

    def command(*argv: str, text_in: str = "") -> subprocess.CompletedProcess[str]:
        return run_here(*argv, cwd=home, env=environ, text_in=text_in)

    flags = ["--facts", str(machine), "--python", str(quick.venv.folder)]
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
    here = {f"{one.key} {one.version}" for one in quick.venv.target().installed}
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
