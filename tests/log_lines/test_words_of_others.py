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


@pytest.mark.parametrize(("code", "said"), [(code, x) for code, all_ in SAID.items() for x in all_])
def test_it_is_known(code: str, said: str) -> None:
    assert [each.code for each in explain_log(f"{said}\n", TABLE)] == [code]


NOT_MISSING = [
    "INFO Loaded libcudnn.so.9\nINFO config file missing, using defaults",
    "/usr/lib/libcudnn.so.9\nls: cannot access '/opt': No such file or directory",
    "bash: nvcc: command not found\nlibcudnn.so.9",
    "libonnxruntime_providers_cuda.so copied\nmissing: 0",
    "libcudnn.so.9: found, libcublas.so.12: found, nvcc: missing",
    "libcudnn.so.9: 0 missing symbols",
    "Checked cublas64_12.dll: no missing dependencies",
    "Loaded /usr/lib/libcudnn.so.9 (warning: debug info not found)",
    "onnxruntime.dll: PDB not found",
    "unable to find libcudart.so.12 in cache, searching: found",
    "Unable to find libcudnn.so.9, skipping GPU registration",
    "unable to find libnvidia-ml.so.1, falling back to rocm",
    'openat(AT_FDCWD, "/x/libcudnn.so.9", O_RDONLY) = -1 ENOENT (No such file or directory)',
    "-- Looking for libcudnn.so.8 - not found",
    "rm: cannot remove 'libcudnn.so.8': No such file or directory",
    "  cp: cannot stat '/usr/lib/libcudnn.so.8': No such file or directory",
    'test -f libcudnn.so.9 || echo "libcudnn.so.9 missing"',
    "If libcudnn.so.9 is missing, the CPU is used instead.",
    "- Fixed missing libcudnn.so.8 in the image",
    "# libcudnn.so.8 missing",
    "/bin/cp: cannot stat 'libcudnn.so.8': No such file or directory",
    "ln: failed to access 'libcudnn.so.9': No such file or directory",
    'failed to compute cache key: "/lib/libonnxruntime_providers_cuda.so": not found',
    "CMake Error at x.cmake:54: file INSTALL cannot find libonnxruntime.so",
    "dpkg-shlibdeps: warning: cannot find library libcudart.so.12 needed by debian/x",
    "Could not find libcudnn.so.8, but found libcudnn.so.9",
    "Could not find libcudart.so.11.0; trying libcudart.so.12",
    "libcudnn.so.9 not found (will try /opt)",
    "checking libcudnn.so.9... not found",
    "W1220 1 nvc_info.c:397] missing library libnvidia-ml.so",
    "zlibwapi.dll not found (not needed for cuDNN 9)",
    'raise FileNotFoundError("cudnn64_9.dll not found")',
    'logger.warning("libcudnn.so.9 not found")',
    "Should cudnn64_9.dll be missing, copy it.",
    "When libcudnn.so.9 is missing, the CPU is used.",
    "if the file libcudnn.so.9 does not exist: exit",
    "Resolved an issue where onnxruntime_providers_cuda.dll was missing from the installer",
    "- [ ] cublas64_12.dll is missing",
    "如果找不到 cudnn64_9.dll，请安装",
    "DLL cudnn64_9.dll 不存在的话请安装",
    "cudnn64_9.dll が見つからない場合は再インストールしてください",
    "onnxruntime_providers_cuda.dll: The specified procedure could not be found.",
    "onnxruntime_providers_cuda.dll: Das angegebene Modul wurde nicht gefunden",
    "onnxruntime_providers_cuda.dll 找不到指定的模块",
    "function cudnnCreate not found in cudnn64_8.dll",
    "RuntimeWarning: numpy.ndarray size changed, may indicate binary incompatibility. Expected 16",
    'level=INFO msg="no compatible GPUs were discovered"',
    "WARNING: The Driver was not detected. WARNING: could not load NVML library",
    "Cleaning build area... (log: /var/lib/dkms/nvidia/550.54.14/build/make.log)",
    "except pynvml.NVMLError_DriverNotLoaded: pass",
    "nvidia-cuda-mps-server exited with status 0",
    "NVRM: Xid (PCI:0000:01:00): 63, Row remapper",
    "Identity providers have to be explicitly listed in the configuration.",
    "126,234,112 onnxruntime_providers_cuda.dll",
    "fact: no versions of onnxruntime-gpu match >1.20,<2.0",
    "set PYTORCH_CUDA_ALLOC_CONF to avoid CUDA out of memory errors",
    "Do not install both onnxruntime and onnxruntime-gpu",
    "Works with both onnxruntime and onnxruntime-gpu",
    '[DllImport("onnxruntime", EntryPoint = "OrtSessionOptionsAppendExecutionProvider_CUDA")]',
    "if onnxruntime.get_device() == 'CPU':  # onnxruntime-gpu",
    "onnxruntime-gpu: print(ort.get_device())  # 'CPU' or 'GPU'",
    "insightface 0.7.3 depends on onnxruntime",
    'return ["CUDAExecutionProvider"] if gpu else ["CPUExecutionProvider"]',
    "How do I choose CPU instead of GPU? I have an RTX 3060.",
    "If you are not using the GPU, install requirements-cpu.txt (RTX 3060)",
    "Set use_gpu=False if GPU is not used. RTX 3060",
    "Embeddings always run on CPU by design. RTX 3060",
    "- Fixed GPU not used on RTX 5090",
    "nvidia-smi: if you are not using the GPU version",
]
"""Something else is not there, or nothing is wrong: they were found by reading the rules."""


@pytest.mark.parametrize("text", NOT_MISSING)
def test_nothing_is_said_where_nothing_is_missing(text: str) -> None:
    assert not [each.code for each in explain_log(f"{text}\n", TABLE) if each.severity != "info"]


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
