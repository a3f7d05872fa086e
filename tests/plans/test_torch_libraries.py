"""What torch for Windows brings in its own directory is shared, and need not be downloaded again.

The environment is ComfyUI's portable Python. What must come out was worked out by hand: torch
2.8.0+cu126 is built with CUDA 12.6.3 and cuDNN 9.10.2.21, whose wheels for Windows have 434.5 MB
(cuBLAS), 199.4 MB (cuFFT), 39.0 MB (NVRTC), 161.9 MB (nvJitLink), 0.9 MB (cudart) and 693.0 MB
(cuDNN): 1.5 GB. onnxruntime-gpu 1.24.1 for Python 3.13 has 207 MB, msvc-runtime 2 MB.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_here

from ortgpu_fix.companions.library_list import libraries
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.lock.locked_facts import without_locked_packages
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.plan.model import Plan
from ortgpu_fix.plan.reasons import RequirementLine
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve, resolve_for_check

FOLDER = Path(__file__).parents[1] / "cases" / "environments"
MATRIX = load_matrix()
COMFY: dict[str, Any] = json.loads((FOLDER / "comfy3.json").read_text("utf-8"))
OF_TORCH = {
    "nvidia-cublas-cu12": "12.6.4.1",
    "nvidia-cuda-nvrtc-cu12": "12.6.85",
    "nvidia-cuda-runtime-cu12": "12.6.77",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-cufft-cu12": "11.3.0.4",
    "nvidia-nvjitlink-cu12": "12.6.85",
}
DLLS = [
    *("c10.dll", "torch_cuda.dll", "cublas64_12.dll", "cublasLt64_12.dll", "cudart64_12.dll"),
    *("cudnn64_9.dll", "cudnn_ops64_9.dll", "cufft64_11.dll", "nvrtc64_120_0.dll"),
    *("nvrtc-builtins64_126.dll", "nvJitLink_120_0.dll"),
]


def comfy(torch: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the environment with another torch, or with none (`torch={}`)."""
    packages = [row for row in COMFY["packages"] if row["name"] != "torch" or torch is None]
    packages += [{"name": "torch", **torch}] if torch else []
    return {**COMFY, "packages": packages, **changes}


def planned(document: dict[str, Any], **options: Any) -> Plan:
    facts = facts_json.from_json(document)
    return resolve(facts, PlanOptions(**options), MATRIX, unlocking=False)


def shared(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.selection if row.index_url == "torch"}


def coming(made: Plan) -> dict[str, str]:
    return {row.name: row.version for row in made.install if row.name.startswith("nvidia-")}


def test_beside_torch_onnxruntime_gpu_comes_alone(tmp_path: Path) -> None:
    (tmp_path / "comfy3.json").write_text(json.dumps(COMFY))
    done = run_here("--facts", "comfy3.json", "--json", cwd=tmp_path, env={"LANG": "C.UTF-8"})
    made = json.loads(done.stdout)

    assert (done.returncode, made["verdict"], made["uninstall"]) == (1, "fixable", ["onnxruntime"])
    assert {row["name"]: row["version"] for row in made["install"]} == {
        "msvc-runtime": "14.51.36231",
        "onnxruntime-gpu": "1.24.1",
    }
    assert sum(row["size"] for row in made["install"]) // 1_000_000 == 209
    packages = made["selection"]["packages"]
    assert {row["name"]: row["version"] for row in packages if row["index"] == "torch"} == OF_TORCH


def test_the_loader_takes_the_dlls_from_torchs_directory() -> None:
    entries = libraries(planned(COMFY).selection, MATRIX, "windows_x86_64")
    places = {Path(row.path).name: row.path.rpartition("/")[0] for row in entries}
    cuda = {name: place for name, place in places.items() if "140" not in name}

    assert set(cuda.values()) == {"torch/lib"}
    assert {name for name in DLLS if name.startswith(("cu", "nv"))} <= cuda.keys()


def test_what_torch_lacks_comes_as_a_wheel() -> None:
    trimmed = [f"torch/lib/{name}" for name in DLLS if name != "nvJitLink_120_0.dll"]
    made = planned(comfy({"version": "2.8.0+cu126", "libraries": trimmed}))

    assert coming(made) == {"nvidia-nvjitlink-cu12": "12.8.93"}
    [told] = [row for row in made.findings if row.code == "libraries-in-torch"]
    assert told.evidence == tuple(f"{name} {version}" for name, version in shared(made).items())
    assert shared(made) == {
        name: version for name, version in OF_TORCH.items() if name != "nvidia-nvjitlink-cu12"
    }


def test_half_of_a_library_is_none() -> None:
    """cublas64_12.dll links cublasLt64_12.dll."""
    half = [f"torch/lib/{name}" for name in DLLS if name != "cublasLt64_12.dll"]
    made = planned(comfy({"version": "2.8.0+cu126", "libraries": half}))

    assert coming(made) == {"nvidia-cublas-cu12": "12.8.5.5"}


@pytest.mark.parametrize(
    "torch",
    [
        {"version": "2.8.0+cpu"},
        {"version": "99.0.0+cu126"},
        {"version": "2.8.0+cu126", "intact": False},
        {"version": "2.8.0+cu126", "outside": True},
    ],
    ids=str,
)
def test_of_any_other_torch_nothing_is_taken(torch: dict[str, Any]) -> None:
    made = planned(comfy(torch))

    assert shared(made) == {}
    assert coming(made).keys() == OF_TORCH.keys()


def test_a_torch_of_another_cuda_major_shares_nothing() -> None:
    machine = {"driver": {"version": "581.42", "cuda": "13.0"}}
    document = comfy({"version": "2.9.1+cu130"}, **machine)
    made = planned(document, onnxruntime="==1.24.1")

    assert (made.verdict, made.selection) == ("impossible", ())
    [rejected] = [row for row in made.rejected if row.version == "1.24.1"]
    assert [why.code for why in rejected.reasons] == ["torch-other-cuda"]
    assert shared(planned(document))["nvidia-cublas"] == "13.0.0.19"  # with one for CUDA 13


def test_a_gpu_without_code_in_torchs_library_gets_a_wheel() -> None:
    """cuBLAS 12.6 has machine code up to 9.0; that of CUDA 12.8 has it for 12.0."""
    gpus = [{"compute_capability": "12.0"}]
    made = planned(comfy(gpus=gpus, driver={"version": "576.52"}))

    assert coming(made)["nvidia-cublas-cu12"].startswith("12.8.")


@pytest.mark.parametrize("given", ["project", "requirements"])
def test_where_a_tool_makes_the_environment_anew_nothing_is_shared(given: str) -> None:
    python = {**COMFY["python"], **({"project": "uv"} if given == "project" else {})}
    lines = (RequirementLine("torch", "torch"),) if given == "requirements" else ()
    made = planned(comfy(python=python), requirements=lines)

    assert shared(made) == {}


def test_a_lock_brings_all_of_it() -> None:
    """torch may not be where the lock is installed."""
    facts = without_locked_packages(facts_json.from_json(COMFY), MATRIX, ["onnxruntime"])
    made = resolve(facts, PlanOptions(), MATRIX, unlocking=False)

    assert shared(made) == {}
    assert coming(made).keys() == OF_TORCH.keys()


def after(made: Plan, document: dict[str, Any]) -> dict[str, Any]:
    """Return the environment with the plan done."""
    gone = {*made.uninstall, *(row.name for row in made.install)}
    packages = [row for row in document["packages"] if row["name"] not in gone]
    packages += [{"name": row.name, "version": row.version} for row in made.install]
    packages += [
        {"name": row.name, "version": row.version, "provided": row.name == "onnxruntime"}
        for row in made.companions
    ]
    folder = {"distribution": "onnxruntime-gpu", "version": "1.24.1", "cuda": "12.8"}
    return {**document, "packages": packages, "onnxruntime": {**folder, "intact": True}}


@pytest.mark.parametrize(
    ("torch", "verdict"),
    [(None, "healthy"), ({}, "fixable"), ({"version": "2.9.1+cu130"}, "impossible")],
    ids=["unchanged", "removed", "another major"],
)
def test_a_check_sees_that_torch_was_updated_or_removed(
    torch: dict[str, Any] | None, verdict: str
) -> None:
    fixed = after(planned(COMFY), COMFY)
    others = [row for row in fixed["packages"] if row["name"] != "torch" or torch is None]
    others += [{"name": "torch", **torch}] if torch else []
    facts = facts_json.from_json({**fixed, "packages": others})

    assert resolve_for_check(facts, PlanOptions(), MATRIX).verdict == verdict
