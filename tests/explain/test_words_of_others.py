"""What NVML, Docker, Kubernetes, PyTorch, CUDA's libraries, .NET and Java say, and people of it.

`cases/wordings.txt` has what is recognised of 738 wordings: a heading with the causes that are
right, then the text. They were written down on 2026-11-26 by two who had not read the rules: one
what programs print, from public threads and from what is known of their sources, one what people
say in nine languages, mostly made up. Of 648 with a cause 379 were right at first sight, 521 are
after the rules were widened by them; nothing was said of the 90 in which nothing is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.matcher import explain_log

TABLE = parse_failures(load_table("failures"))
NVML = "Failed to initialize NVML: "
CLI = "nvidia-container-cli: "
SHADOWED = "cannot import name 'InferenceSession' from partially initialized module 'onnxruntime'"
SAID = {
    "onnxruntime-shadowed": [f"ImportError: {SHADOWED} (/app/onnxruntime.py)"],
    "msvc-runtime-too-old": [
        "ImportError: cannot import name 'RunOptions' from 'onnxruntime.capi._pybind_state'",
        "onnxruntime.dll: A dynamic link library (DLL) initialization routine failed",
    ],
    "cudnn-mismatch": [
        "cuDNN version mismatch: PyTorch was compiled against 7102 but linked against 7605",
    ],
    "driver-unknown-error": ["cudart init failure: 999", "cudaSetDevice err: 999"],
    "provider-not-loaded": [
        "LoadLibrary failed with error 126 when trying to use `onnxruntime_providers_cuda.dll`",
    ],
    "no-gpu-visible": [
        f"{NVML}Unknown Error",
        f"{NVML}Insufficient Permissions",
        "RuntimeError: No CUDA GPUs are available",
        f"{CLI}device error: 7: unknown device: unknown",
        f"{CLI}initialization error: WSL environment detected but no adapters were found: unknown",
        "docker: Error response from daemon: Unknown runtime specified nvidia.",
        "unknown or invalid runtime name: nvidia",
        "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "No devices found. Waiting indefinitely.",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "CUDA driver initialization failed, you might not have a CUDA gpu.",
    ],
    "driver-library-missing": [
        f"{NVML}GPU access blocked by the operating system",
        "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
        "bash: nvidia-smi: command not found",
        "/bin/sh: 1: nvidia-smi: not found",
        'exec: "nvidia-smi": executable file not found in $PATH',
        "'nvidia-smi' is not recognized as an internal or external command",
        "'nvidia-smi' 不是内部或外部命令，也不是可运行的程序",
        "failed call to cuInit: UNKNOWN ERROR (303)",
    ],
    "driver-not-running": [
        f"{NVML}Driver Not Loaded",
        f"{CLI}initialization error: nvml error: driver not loaded: unknown",
    ],
    "driver-mismatch": [
        f"{CLI}mount error: file creation failed: /x/libnvidia-ml.so.1: file exists: unknown",
    ],
    "driver-too-old": [
        f"{CLI}requirement error: unsatisfied condition: cuda>=12.8, please update your driver",
        "PTX was compiled with an unsupported toolchain",
    ],
    "cuda-library-failed": [
        "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
        "RuntimeError: GET was unable to find an engine to execute this computation",
        "CUFFT failure 5: CUFFT_INTERNAL_ERROR",
        "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR",
    ],
    "torch-without-this-gpu": [
        "Found GPU0 Tesla K80 which is of cuda capability 3.7.",
    ],
    "nvrtc-missing": ["nvrtc: error: failed to open libnvrtc-builtins.so.12.1."],
    "no-kernel-image": [
        "nvrtc: error: invalid value for --gpu-architecture (-arch)",
        "nvrtc: error: failed to load builtins for compute_120.",
    ],
    "tensorrt-unavailable": ["Please install TensorRT libraries as mentioned in the page"],
    "provider-files-missing": [
        "The type initializer for 'Microsoft.ML.OnnxRuntime.NativeMethods' threw an exception",
        "java.lang.UnsatisfiedLinkError: no onnxruntime in java.library.path",
    ],
    "cpu-fallback": [
        "CUDAExecutionProvider is not available. Falling back to CPU",
        "ONNX Runtime: CUDA provider is not available",
    ],
    "cudnn-parts-missing": ["系统环境有添加，但是cudnn_ops64_9.dll文件一直识别不到"],
    "cuda-11-libraries-missing": [
        "Could not load dynamic library 'libcudart.so.11.0'",
        "\tlibcublas.so.11 => not found",
        "The program can't start because cublas64_11.dll is missing from your computer.",
    ],
}


@pytest.mark.parametrize(("code", "said"), [(code, x) for code, all_ in SAID.items() for x in all_])
def test_it_is_known(code: str, said: str) -> None:
    assert [each.code for each in explain_log(f"{said}\n", TABLE)] == [code]


WORDINGS = (Path(__file__).parents[1] / "cases" / "wordings.txt").read_text("utf-8")


@pytest.mark.parametrize("block", re.split(r"(?m)^# ", WORDINGS)[1:])
def test_a_wording_is_recognised(block: str) -> None:
    heading, _, text = block.partition("\n")
    right, said = set(heading.split()), explain_log(text, TABLE)
    errors = [each.code for each in said if each.severity != "info"]

    if right <= {"healthy", "none"}:
        assert not errors
    else:
        assert (errors or [each.code for each in said])[0] in right
