"""What `explain` ends with is run, in an environment that has the cause: afterwards it is gone.

Failures of each kind that `--apply` can mend are planted. The environment, uv, the wheels' files,
the plan and the change are real; the wheels are stand-ins without a library in them, so the
inference that an apply ends with is left out. The machine (driver, GPUs) is that of a facts file.
"""

from __future__ import annotations

import json
import os
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
from ortgpu_fix.data_files import load_table
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
MIXED = (
    "/opt/cuda-11.8/lib64/libcublas.so.12: undefined symbol: cublasLtGetVersion, version"
    " libcublasLt.so.12\n"
)
HIDES, SEARCHES = "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"
A100 = {"driver": ("535.104.12", "12.2"), "gpu": "8.0"}
NEW = {"driver": ("580.95.05", "13.0"), "gpu": "8.9"}
V100 = {"driver": ("580.95.05", "13.0"), "gpu": "7.0"}
RTX5090 = {"driver": ("580.95.05", "13.0"), "gpu": "12.0"}
WINDOWS = {"system": "windows", "driver": ("551.86", "12.4"), "gpu": "8.0", "libc": None}
MSVC_2019, MSVC_2022 = (
    [{"name": f"{name}.dll", "version": version} for name in ("msvcp140", "vcruntime140_1")]
    for version in ("14.29.30139.0", "14.44.35211.0")
)
GPU_BUILD = "onnxruntime-gpu 1.26.0"


ZLIB = ("cublas64_11", "cublasLt64_11", "cudart64_110", "cufft64_10", "cudnn64_8")
"""The libraries of a CUDA 11 and a cuDNN 8 that were copied by hand."""


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
    "somebody requires the CPU build": Case(
        "cpu-build-required",
        "fastembed 0.9.1 requires onnxruntime, which is not installed.\n",
        (GPU_BUILD, "fastembed 0.9.1"),
    ),
    "no cuDNN": Case("cudnn-9-missing", MISSING.format("libcudnn.so.9"), (GPU_BUILD,)),
    "no part of cuDNN": Case(
        "cudnn-parts-missing",
        "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot"
        " open shared object file: No such file or directory\n",
        ("onnxruntime-gpu 1.18.1",),
    ),
    "cuDNN of both majors": Case(
        "cudnn-mismatch",
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH\n",
        (GPU_BUILD, "nvidia-cudnn-cu12 9.10.2.21", "nvidia-cudnn-cu13 9.14.0.64"),
        gone=("nvidia-cudnn-cu13 9.14.0.64",),
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
    "a release that the mirror lacks": Case(
        "no-wheel",
        "ERROR: No matching distribution found for onnxruntime-gpu==1.26.0\n",
        (),
        command="ortgpu-fix --index-url https://pypi.org/simple --apply",
        before="not-so",
    ),
    "an old C library": Case(
        "system-libraries-too-old",
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by"
        " /x/onnxruntime/capi/onnxruntime_pybind11_state.so)\n",
        ("onnxruntime-gpu 1.31.1",),
        NEW | {"libc": "glibc 2.27"},
        gone=("onnxruntime-gpu 1.31.1",),
    ),
}
ON_WINDOWS = {
    "an old Visual C++ runtime": Case(
        "msvc-runtime-too-old",
        "ImportError: DLL load failed while importing onnxruntime_pybind11_state: A dynamic link"
        " library (DLL) initialization routine failed.\n",
        (GPU_BUILD,),
        WINDOWS | {"libraries": MSVC_2019},
    ),
    "no zlib for a cuDNN that was copied": Case(
        "zlibwapi-missing",
        "Could not locate zlibwapi.dll. Please make sure it is in your library path\n",
        ("onnxruntime-gpu 1.18.1", "numpy 1.26.4"),
        WINDOWS | {"libraries": [{"name": f"{name}.dll"} for name in ZLIB] + MSVC_2022},
        gone=("onnxruntime-gpu 1.18.1",),
    ),
}
"""What only Windows has: the plan for it is made here, and done to the facts alone."""
QUICK = ("the CPU build", "no part of cuDNN")


@pytest.mark.parametrize("name", ON_WINDOWS)
def test_on_windows_the_cause_is_not_in_the_facts_once_the_plan_is_done(
    name: str, tmp_path: Path
) -> None:
    case = ON_WINDOWS[name]
    rows = [dict(zip(("name", "version"), one.split(), strict=True)) for one in case.installed]
    version, cuda = rows[0]["version"], "11.8" if rows[0]["version"] < "1.19" else "12.8"
    build = {"distribution": "onnxruntime-gpu", "version": version, "cuda": cuda}
    document = json.loads(facts_of(case, "3.11.7")) | {"packages": rows, "onnxruntime": build}
    machine = tmp_path / "machine.json"

    def command(*argv: str) -> dict[str, Any]:
        machine.write_text(json.dumps(document), "utf-8")
        environ = clean_environment() | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
        done = run_here(
            *argv, "--facts", str(machine), "--json", cwd=tmp_path, env=environ, text_in=case.log
        )
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    before = command("explain")
    words = shlex.split(before["mending"]["command"])
    flags = [word for word in words[1:-1] if word not in {"--facts", str(machine)}]
    plan = command(*flags)
    there: dict[str, dict[str, Any]] = {row["name"]: dict(row) for row in rows}
    for row in (*plan["install"], *plan["companions"]):
        there[row["name"]] = {"name": row["name"], "version": row["version"]}
    there.get("onnxruntime", {})["provided"] = True
    for line in map(Requirement, plan["requires"]):
        there[line.name] = {
            "name": line.name,
            "version": "99" if line.name != "numpy" else "1.26.4",
        }
    document["packages"] = list(there.values())
    document["onnxruntime"] = build | {
        "version": there["onnxruntime-gpu"]["version"],
        "cuda": "12.8",
    }
    after = command("explain")

    assert [row["here"]["state"] for row in before["explanations"]] == ["confirmed"]
    assert words[-1] == "--apply"
    assert plan["verdict"] == "fixable"
    assert not {f"{row['name']} {row['version']}" for row in there.values()} & set(case.gone)
    assert [row["here"]["state"] for row in after["explanations"]] == ["not-so"]
    assert shlex.split(after["mending"]["command"])[-1] == "verify"


def plant(stand: Stand, case: Case, folder: Path) -> None:
    """Install what the case has, in its order, and take away what it lacks."""
    for one in case.installed:
        stand.venv.install(make_standin(folder, *one.split()))
    for path in case.remove:
        (stand.venv.site / path).unlink()


def facts_of(case: Case, version: str) -> str:
    """Return the machine as a facts file."""
    release, cuda = case.machine["driver"]
    libc, system = (case.machine.get("libc", "glibc 2.35"), case.machine.get("system", "linux"))
    gpu = {"name": "a GPU", "compute_capability": case.machine["gpu"], "memory_mib": 40000}
    document = {
        "schema": 1,
        "platform": {"system": system, "machine": "x86_64", "libc": libc},
        "driver": {"version": release, "cuda": cuda, "error": None},
        "gpus": [gpu],
        "python": {"version": version},
        "packages": [],
        "libraries": case.machine.get("libraries", []),
        "sources": {"libraries": "search"} if system == "windows" else {},
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


@pytest.mark.parametrize(
    ("code", "log", "variable", "value"),
    [
        ("no-gpu-visible", "CUDA failure 100: no CUDA-capable device is detected\n", HIDES, "-1"),
        ("libraries-mixed", MIXED, SEARCHES, "/opt/cuda-11.8/lib64"),
    ],
)
def test_what_is_unset_is_gone(
    code: str, log: str, variable: str, value: str, tmp_path: Path
) -> None:
    """`unset NAME`, as it is printed: nothing of the environment says it afterwards."""
    rows: Any = load_table("failures")["failure"]
    (line,) = [
        each for row in rows if row["code"] == code for each in row["commands"] if "unset" in each
    ]
    program = f'{line}; printf %s "${{{variable}-gone}}"'
    environ = {"PATH": os.environ["PATH"], variable: value}
    done = subprocess.run(["sh", "-c", program], env=environ, capture_output=True, check=True)
    states = {}
    for name, environment in (("before", {variable: value}), ("after", {})):
        machine = tmp_path / f"{name}.json"
        document = json.loads(facts_of(CASES["no cuDNN"], "3.11.7"))
        library = {"name": "libcublas.so.12", "path": f"{value}/libcublas.so.12"}
        found = [library] if variable == SEARCHES and environment else []
        machine.write_text(
            json.dumps(document | {"environment": environment, "libraries": found}), "utf-8"
        )
        told = run_here(
            *("explain", "--facts", str(machine), "--json"),
            cwd=tmp_path,
            env=clean_environment() | {"HOME": str(tmp_path)},
            text_in=log,
        )
        states[name] = json.loads(told.stdout)["explanations"][0]["here"]["state"]

    assert done.stdout == b"gone"
    assert states["before"] == "confirmed"
    assert states["after"] != "confirmed"


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
