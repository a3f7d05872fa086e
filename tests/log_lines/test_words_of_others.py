"""What NVML, Docker, Kubernetes, PyTorch, CUDA's libraries, .NET and Java print.

`cases/wordings.txt` has a heading with the causes that are right, then the text: lines that
programs print, and texts in which nothing is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

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
        'exec: "nvidia-smi": executable file not found in $PATH',
        r"exec: \"nvidia-smi\": executable file not found in $PATH",
        'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        "failed to discover GPU vendor from CDI: no known GPU vendor found",
        "FAILED_PRECONDITION: No visible GPU devices.",
        "You are using GPU version Paddle, but your CUDA device is not set properly.",
    ],
    "driver-library-missing": [
        f"{NVML}GPU access blocked by the operating system",
        "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
        "bash: nvidia-smi: command not found",
        "/bin/sh: 1: nvidia-smi: not found",
        "nvidia-smi: executable file not found in $PATH",
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
    "cuda-11-libraries-missing": [
        "Could not load dynamic library 'libcudart.so.11.0'",
        "\tlibcublas.so.11 => not found",
        "The program can't start because cublas64_11.dll is missing from your computer.",
    ],
}


@pytest.mark.parametrize("code", SAID)
def test_it_is_known(code: str) -> None:
    found = {text: [each.code for each in explain_log(f"{text}\n", TABLE)] for text in SAID[code]}
    assert found == {text: [code] for text in SAID[code]}


NOT_MISSING = [
    "/usr/lib/libcudnn.so.9\nls: cannot access '/opt': No such file or directory",
    "bash: nvcc: command not found\nlibcudnn.so.9",
    "libcudnn.so.9: found, libcublas.so.12: found, nvcc: missing",
    "unable to find libcudart.so.12 in cache, searching: found",
    "Unable to find libcudnn.so.9, skipping GPU registration",
    "unable to find libnvidia-ml.so.1, falling back to rocm",
    'openat(AT_FDCWD, "/x/libcudnn.so.9", O_RDONLY) = -1 ENOENT (No such file or directory)',
    "-- Looking for libcudnn.so.8 - not found",
    "  cp: cannot stat '/usr/lib/libcudnn.so.8': No such file or directory",
    'test -f libcudnn.so.9 || echo "libcudnn.so.9 missing"',
    "If libcudnn.so.9 is missing, the CPU is used instead.",
    "- Fixed missing libcudnn.so.8 in the image",
    "ln: failed to access 'libcudnn.so.9': No such file or directory",
    'failed to compute cache key: "/lib/libonnxruntime_providers_cuda.so": not found',
    "CMake Error at x.cmake:54: file INSTALL cannot find libonnxruntime.so",
    "Could not find libcudnn.so.8, but found libcudnn.so.9",
    "Could not find libcudart.so.11.0; trying libcudart.so.12",
    "checking libcudnn.so.9... not found",
    "zlibwapi.dll not found (not needed for cuDNN 9)",
    'logger.warning("libcudnn.so.9 not found")',
    "When libcudnn.so.9 is missing, the CPU is used.",
    "Resolved an issue where onnxruntime_providers_cuda.dll was missing from the installer",
    "如果找不到 cudnn64_9.dll，请安装",
    "cudnn64_9.dll が見つからない場合は再インストールしてください",
    "onnxruntime_providers_cuda.dll: The specified procedure could not be found.",
    "onnxruntime_providers_cuda.dll 找不到指定的模块",
    "function cudnnCreate not found in cudnn64_8.dll",
    "RuntimeWarning: numpy.ndarray size changed, may indicate binary incompatibility. Expected 16",
    'level=INFO msg="no compatible GPUs were discovered"',
    "WARNING: The Driver was not detected. WARNING: could not load NVML library",
    "Cleaning build area... (log: /var/lib/dkms/nvidia/550.54.14/build/make.log)",
    "NVRM: Xid (PCI:0000:01:00): 63, Row remapper",
    "Identity providers have to be explicitly listed in the configuration.",
    "126,234,112 onnxruntime_providers_cuda.dll",
    "fact: no versions of onnxruntime-gpu match >1.20,<2.0",
    "set PYTORCH_CUDA_ALLOC_CONF to avoid CUDA out of memory errors",
    "Do not install both onnxruntime and onnxruntime-gpu",
    "if onnxruntime.get_device() == 'CPU':  # onnxruntime-gpu",
    "onnxruntime-gpu: print(ort.get_device())  # 'CPU' or 'GPU'",
    'return ["CUDAExecutionProvider"] if gpu else ["CPUExecutionProvider"]',
    "How do I choose CPU instead of GPU? I have an RTX 3060.",
    "Set use_gpu=False if GPU is not used. RTX 3060",
    "- Fixed GPU not used on RTX 5090",
]
"""Something else is not there, or nothing is wrong: they were found by reading the rules."""


def test_nothing_is_said_where_nothing_is_missing() -> None:
    found = {text: explain_log(f"{text}\n", TABLE) for text in NOT_MISSING}
    assert not {text for text, said in found.items() if any(row.severity != "info" for row in said)}


WORDINGS = (Path(__file__).parents[1] / "cases" / "wordings.txt").read_text("utf-8")


@pytest.mark.slow
def test_a_wording_is_recognised() -> None:
    for block in re.split(r"(?m)^# ", WORDINGS)[1:]:
        heading, _, text = block.partition("\n")
        right, said = set(heading.split()), explain_log(text, TABLE)
        errors = [each.code for each in said if each.severity != "info"]
        if right <= {"healthy", "none"}:
            assert not errors, text
        else:
            assert (errors or [each.code for each in said])[0] in right, text
