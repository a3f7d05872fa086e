"""What `smoke` says, event by event, in the words of real releases; and what that proves."""

from __future__ import annotations

import json
from typing import Any

from ortgpu_fix.facts.model import Driver
from ortgpu_fix.verify.verdict import judge
from ortgpu_fix.verify.verification import Verification

GPU, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
PROVIDER_DLL = r"C:\env\onnxruntime\capi\onnxruntime_providers_cuda.dll"
ABSENT = "cannot open shared object file: No such file or directory"
NO_LIBCUDA = {"event": "driver", "library": None, "cuda": None, "error": f"libcuda.so.1: {ABSENT}"}
FAILURE = (
    "RuntimeError: /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:122 [with ERRTYPE "
    "= cudaError; bool THRW = true] {} ; GPU=32767 ; hostname=build-7 ; file=/onnxruntime_src/"
    "onnxruntime/core/providers/cuda/cuda_execution_provider.cc ; line=281 ; expr=cudaSetDevice("
    "info_.device_id);"
)
TOO_OLD = "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version"
NO_DEVICE = "CUDA failure 100: no CUDA-capable device is detected"
NOT_LOADED = (
    "\x1b[1;31m2026-11-21 10:14:38.422 [E:onnxruntime:Default, provider_bridge_ort.cc:1745 "
    "TryGetProviderInfo_CUDA] [ONNXRuntimeError] : 1 : FAIL : Failed to load library "
    "/env/onnxruntime/capi/libonnxruntime_providers_cuda.so with error: {}\n\x1b[m\n"
)
NO_KERNEL = (
    "onnxruntime.capi.onnxruntime_pybind11_state.Fail: [ONNXRuntimeError] : 1 : FAIL : Non-zero "
    "status code returned while running Conv node. Name:'conv' Status Message: CUDA error "
    "cudaErrorNoKernelImageForDevice:no kernel image is available for execution on the device"
)
RFFT_ON_CPU = (
    "onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented: [ONNXRuntimeError] : 9 : "
    "NOT_IMPLEMENTED : Could not find an implementation for Rfft(1) node with name 'fft'"
)
NUMPY = """
A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.2.6 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.

Traceback (most recent call last):  File "smoke.py", line 271, in <module>
    {}
AttributeError: _ARRAY_API not found
"""
IMPORTED = "from onnxruntime.capi._pybind_state import ExecutionMode  # noqa: F401"
"""What numpy 2 says where onnxruntime 1.16.3 is imported."""
START = {"event": "start", "python": "3.11.7", "plain": False}
IMPORTING = {"event": "doing", "what": "import onnxruntime"}
BUILD = {
    "event": "onnxruntime",
    "file": "/env/onnxruntime/__init__.py",
    "version": "1.26.0",
    "cuda": "12.8",
    "error": None,
    "whole": True,
}
INFERRING = {"event": "doing", "what": "inference", "model": "conv"}
END = {"event": "end"}


def driver(cuda: str | None = "12.2", init: int | None = 0) -> dict[str, Any]:
    return {"event": "driver", "library": "/usr/lib/libcuda.so.1", "cuda": cuda, "init": init}


def needed(*rows: dict[str, Any], cuda: str | None = "12") -> dict[str, Any]:
    return {"event": "needed", "cuda": cuda, "libraries": list(rows)}


def library(name: str, error: str | None = None, **more: object) -> dict[str, Any]:
    return {"name": name, "error": error, "helped": None, "optional": False} | more


def model(name: str, *nodes: str, deviation: float | None = 0.0, **more: object) -> dict[str, Any]:
    rows = [{"op": op, "provider": f"{at}ExecutionProvider"} for op, at in map(str.split, nodes)]
    times = {"create_ms": 20.5, "first_ms": 12, "second_ms": 0.2}
    row = {"event": "model", "name": name, "nodes": rows, "error": None, "deviation": deviation}
    return row | times | more


def failed(name: str, error: str) -> dict[str, Any]:
    return {"event": "model", "name": name, "nodes": [], "error": error}


ON_GPU = (
    model("conv", "Conv CUDA", "MemcpyToHost CUDA"),
    model("matmul", "MemcpyFromHost CPU", "MatMul CUDA"),
    model("fft", "Rfft CUDA"),
)
ON_CPU = (
    model("conv", "Conv CPU", "ReorderOutput CPU"),
    model("matmul", "MatMul CPU"),
    failed("fft", RFFT_ON_CPU),
)


def say(
    *events: object,
    stderr: str = "",
    returncode: int = 0,
    timed_out: bool = False,
    known: Driver | None = None,
) -> Verification:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return judge(
        stdout="\n".join(lines),
        stderr=stderr,
        returncode=returncode,
        timed_out=timed_out,
        driver=known,
    )


def each(error: str) -> list[dict[str, Any]]:
    return [failed(name, FAILURE.format(error)) for name in ("conv", "matmul", "fft")]
