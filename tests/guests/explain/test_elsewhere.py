"""The failures of other programs: told as theirs, by the cause that they share with ours."""

from __future__ import annotations

from typing import Any

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import fix_for
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log
from ortgpu_fix.messages.catalog import LANGUAGES
from ortgpu_fix.plan.reasons import reason

RAW = load_table("failures")
TABLE = parse_failures(RAW)
TENSORFLOW = (
    "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library"
    " '{0}'; dlerror: {0}: cannot open shared object file: No such file or directory\n"
)
GPU = "Skipping registering GPU devices...\n"
"""TensorFlow says so only where the driver shows a GPU."""
PADDLE = (
    "RuntimeError: (PreconditionNotMet) The third-party dynamic library ({}) that Paddle depends on"
    " is not configured correctly. (error code is 126)\n"
)
OURS = "onnxruntime_providers_cuda.so with error: libcublasLt.so.11: cannot open shared object file"
TORCH = (
    r'[WinError {}] x. Error loading "C:\x\site-packages\torch\lib\{}" or one of its dependencies.'
)


def only(log: str) -> Explanation:
    (found,) = explain_log(log, TABLE)
    return found


TF = [
    ("libcublas.so.10", "cuda-10-libraries-missing"),
    ("libcublas.so.11", "cuda-11-libraries-missing"),
    ("libcublas.so.12", "cuda-12-libraries-missing"),
    ("libcurand.so.10", "curand-missing"),
    ("libcudnn.so.8", "cudnn-8-missing"),
    ("libcudnn.so.9", "cudnn-9-missing"),
    ("libcudnn_ops.so.9", "cudnn-parts-missing"),
]
FRAMEWORK = {
    "provider-not-loaded": ["Cannot dlopen some GPU libraries. Please make sure"],
    "cuda-11-libraries-missing": [PADDLE.format("cublas64_118.dll;cublas64_11.dll")],
    "cudnn-8-missing": [PADDLE.format("cudnn64_8.dll")],
    "cudnn-parts-missing": [PADDLE.format("libcudnn.so")],
    "cuda-12-libraries-missing": ["cudnnGetVersion() failed: The cuDNN library was not found."],
    "cuda-13-libraries-missing": [
        (
            "Exception when calling jax_plugins.xla_cuda13.initialize()\n"
            "cusparseGetProperty() failed: The cuSPARSE library was not found."
        ),
    ],
    "libraries-mixed": [
        "Found cuSOLVER version 11002, but JAX was built against version 11401, which is newer."
    ],
    "cudnn-mismatch": ["Outdated cuDNN installation found."],
    "cpu-build-in-use": [
        "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed."
    ],
    "no-kernel-image": [
        "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12"
    ],
    "cpu-fallback": [
        "RTX 3060: Could not find cuda drivers on your machine, GPU will not be used."
    ],
}
PYTORCH = {
    "msvc-runtime-too-old": [TORCH.format(126, "fbgemm.dll")],
    "provider-not-loaded": ["UnsatisfiedLinkError: torch_cuda.dll: Can't find dependent libraries"],
    "libraries-mixed": ["/x/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister"],
    "torch-cuda-differs": [
        "PyTorch and torchvision were compiled with different CUDA major versions."
    ],
    "torch-without-cuda": [
        "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
    ],
}
NO_CODE = "no kernel image is available for execution on the device"
GGML = {
    "no-kernel-image": [
        f"CUDA error: {NO_CODE}\n  current device: 0, in function ggml_cuda_op_mul_mat"
    ],
    "cpu-build-in-use": ['RTX 3060 msg="Dynamic LLM libraries" runners=[cpu]'],
    "cpu-fallback": ['RTX 3060 msg="inference compute" id=cpu library=cpu'],
    "out-of-memory": ["device 0: cudaMalloc failed: out of memory"],
    "provider-not-loaded": [
        "LLamaSharp.Backend.Cuda12: The native library cannot be correctly loaded."
    ],
}
CTRANSLATE2 = {
    "cpu-build-in-use": ["ValueError: This CTranslate2 package was not compiled with CUDA support"]
}
ANYBODYS = {
    "driver-library-missing": [TENSORFLOW.format("libcuda.so.1") + GPU],
    "driver-unknown-error": ["Cuda error(999), unknown error."],
    "driver-mismatch": ["Unable to load CUDA management library: nvml init failure: 18"],
    "driver-not-running": ["Unable to load CUDA management library: nvml init failure: 9"],
    "driver-too-old": ["CUDA error(35), CUDA driver"],
    "torch-without-cuda": ["RTX 3060: CUDA used to build PyTorch: Could not collect"],
    "cudnn-9-missing": ["Could not  load dynamic library 'libcudnn.so.9'"],
    "ptxas-too-old": ["libnvvm : error: -arch=compute_120 is an unsupported option"],
    "nvvm-missing": ["Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice."],
    "tensorrt-engine-mismatch": [
        "The engine plan file is generated on an incompatible device, expecting compute 8.6"
    ],
    "driver-dropped-gpu": ["installed in this system is not supported by the NVIDIA 520.56.06"],
    "out-of-memory": ["ResourceExhaustedError: Out of memory error on GPU 0."],
    "gpu-hardware-fault": ["NVRM: GPU 0000:01:00.0: GPU has fallen off the bus."],
}
CASES = [
    *((TENSORFLOW.format(name) + GPU, code, "framework") for name, code in TF),
    *(
        (log, code, program)
        for program, table in (
            ("framework", FRAMEWORK),
            ("pytorch", PYTORCH),
            ("ggml", GGML),
            ("ctranslate2", CTRANSLATE2),
            (None, ANYBODYS),
        )
        for code, logs in table.items()
        for log in logs
    ),
]


@pytest.mark.parametrize(("log", "code", "program"), CASES)
def test_it_is_known_and_whose_it_is(log: str, code: str, program: str | None) -> None:
    found = only(log)

    assert (found.code, found.origin) == (code, program)
    if program:
        assert (found.commands, found.fixable) == ((), False)
        assert fix_for((found,), (), None).why == reason("mend-other-program")
        (source,) = (each["source"] for each in RAW["origin"] if each["code"] == program)
        assert found.sources == (source,)
    for language in LANGUAGES:
        (said,) = explain_log(log, TABLE, language)
        assert "{" not in said.cause + said.remedy
        assert "  " not in said.cause.replace("\n", " ")


@pytest.mark.parametrize(
    "log",
    [
        TENSORFLOW.format("libcudart.so.11.0"),
        TENSORFLOW.format("libcuda.so.1"),
        "CUDA used to build PyTorch: None",
        'msg="inference compute" id=cpu library=cpu',
    ],
)
def test_what_a_machine_without_a_gpu_prints_too_is_information(log: str) -> None:
    """With a GPU it is the reason; without one nothing is wrong, and nothing is to be typed."""
    (maybe,) = explain_log(log, TABLE)
    (wanted,) = explain_log(log, TABLE, has_gpu=True)

    assert (maybe.severity, maybe.certain, maybe.fixable, maybe.commands) == (
        "info",
        False,
        False,
        (),
    )
    assert (maybe.code, maybe.cause, maybe.remedy) == (wanted.code, wanted.cause, wanted.remedy)
    assert wanted.severity != "info"
    assert fix_for((maybe,), (), None).why == reason("mend-if-wanted")
    assert fix_for((maybe,), (), None).arguments == ()


def test_where_ours_is_the_same_only_ours_is_told() -> None:
    found = only(f"{TENSORFLOW.format('libcublas.so.11')}{GPU}{OURS}")

    assert (found.code, found.origin, found.severity) == (
        "cuda-11-libraries-missing",
        None,
        "error",
    )
    assert found.libraries == ("libcublasLt.so.11",)
    assert [each.line_number for each in found.evidence] == [3]


def test_ours_stands_first() -> None:
    other, ours = "device 0: cudaMalloc failed: out of memory", "CUDA failure 999: unknown error"

    assert [each.code for each in explain_log(f"{other}\n{ours}\n", TABLE)] == [
        "driver-unknown-error",
        "out-of-memory",
    ]
    assert [
        each.code for each in explain_log(f"{TORCH.format(126, 'c10.dll')}\n{other}", TABLE)
    ] == [
        "msvc-runtime-too-old",
        "out-of-memory",
    ]


# The table


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"program": "x", "match": ["no|fixed text"]}, r"elsewhere\[0\].*match\[0\]"),
        ({"program": "x", "match": ["fixed text"]}, r"elsewhere\[0\]\.cause: missing"),
    ],
)
def test_one_that_does_not_fit_is_named(row: dict[str, Any], path: str) -> None:
    table = {"failure": [RAW["failure"][0] | {"elsewhere": [row]}], "library": []}

    with pytest.raises(ValueError, match=path):
        parse_failures(table)


def test_a_program_without_a_language_is_named() -> None:
    origin = {"code": "x", "name": {}, "source": "", "remedy": {"torch": {"en": "Do it"}}}

    with pytest.raises(ValueError, match=r"origin\[0\]"):
        parse_failures({"failure": [], "library": [], "origin": [origin]})
