"""The failures of other programs: told as theirs, by the cause that they share with ours."""

from __future__ import annotations

import re
from string import Formatter
from typing import Any

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.fix import fix_for
from ortgpu_fix.log_lines.explanations import MOST_EVIDENCE, Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search, explain_log
from ortgpu_fix.log_lines.wordings import Signal, asked
from ortgpu_fix.messages.catalog import LANGUAGES
from ortgpu_fix.plan.reasons import reason

RAW = load_table("failures")
TABLE = parse_failures(RAW)
ELSEWHERE = [(row["code"], each) for row in RAW["failure"] for each in row.get("elsewhere", ())]
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
    ("libcusolver.so.11", "cuda-11-libraries-missing"),
    ("libcusparse.so.11", "cuda-11-libraries-missing"),
    ("libcublas.so.12", "cuda-12-libraries-missing"),
    ("libcublas.so.13", "cuda-13-libraries-missing"),
    ("libcurand.so.10", "curand-missing"),
    ("libcudnn.so.8", "cudnn-8-missing"),
    ("libcudnn.so.9", "cudnn-9-missing"),
    ("libcudnn_ops.so.9", "cudnn-parts-missing"),
]
FRAMEWORK = {
    "provider-not-loaded": [
        "Cannot dlopen some GPU libraries. Please make sure",
        PADDLE.format("libcublas.so"),
    ],
    "cuda-11-libraries-missing": [PADDLE.format("cublas64_118.dll;cublas64_11.dll")],
    "cudnn-8-missing": [PADDLE.format("cudnn64_8.dll")],
    "cudnn-parts-missing": [
        PADDLE.format("libcudnn.so"),
        r'paddlepaddle-gpu: "x\paddle\..\bin\cudnn_cnn64_9.dll" or one of its dependencies.',
    ],
    "cuda-12-libraries-missing": [
        "cudnnGetVersion() failed: The cuDNN library was not found.",
        "the cuSPARSE library cannot be found",
        "RuntimeError: Unable to load cuSOLVER. Is it installed?",
    ],
    "cuda-13-libraries-missing": [
        (
            "Exception when calling jax_plugins.xla_cuda13.initialize()\n"
            "cusparseGetProperty() failed: The cuSPARSE library was not found."
        ),
    ],
    "libraries-mixed": [
        "Found cuSOLVER version 11002, but JAX was built against version 11401, which is newer.",
        "Outdated cuBLAS installation found.",
        "Outdated CUDA installation found.",
    ],
    "cudnn-mismatch": [
        "Outdated cuDNN installation found.",
        TORCH.replace("torch", "paddle").format(127, "cudnn_cnn64_9.dll"),
        "Found cuDNN version 8600, but JAX was built against version 8900, which is newer.",
        "UNIMPLEMENTED: DNN library is not found.",
        "The installed Paddle is compiled with CUDNN 8.2, but CUDNN version in your machine is 8.1",
    ],
    "cpu-build-in-use": [
        "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed.",
        "Cannot use GPU because you have installed CPU version PaddlePaddle.",
        "The device should not be 'gpu', since PaddlePaddle is not compiled with CUDA",
        "Place CUDAPlace(0) is not supported. Please check that your paddle compiles with WITH_GPU",
        "XGBoost version not compiled with GPU support.",
        "[LightGBM] [Fatal] CUDA Tree Learner was not enabled in this build.",
        "The installed version of bitsandbytes was compiled without GPU support.",
        "RuntimeError: Not compiled with GPU support",
        "RTX 3060: module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'",
        "MXNetError: Check failed: false: Compile with USE_CUDA=1 to enable GPU usage",
    ],
    "no-kernel-image": [
        "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12",
        "Mismatched GPU Architecture: The installed PaddlePaddle package was compiled for 75",
        "RuntimeError: Unsupported GPU architecture",
        "Pascal, which is not compatible with Paddle installation with arch: 70 75",
        "compute capability: 3.0) The minimum required Cuda capability is 3.5.",
    ],
    "cpu-fallback": [
        "RTX 3060: Could not find cuda drivers on your machine, GPU will not be used.",
        "RTX 3060: No GPU/TPU found, falling back to CPU.",
    ],
}
PYTORCH = {
    "msvc-runtime-too-old": [
        TORCH.format(126, "fbgemm.dll"),
        TORCH.format(127, "c10.dll"),
        TORCH.format(182, "shm.dll"),
        TORCH.format(193, "torch_python.dll"),
        TORCH.format(1114, "torch_cpu.dll"),
    ],
    "provider-not-loaded": [
        "UnsatisfiedLinkError: torch_cuda.dll: Can't find dependent libraries",
        "RuntimeError: CUDA Setup failed despite GPU being available.",
        "Could not find the bitsandbytes CUDA binary at PosixPath('/x/libbitsandbytes_cuda124.so')",
    ],
    "libraries-mixed": ["/x/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister"],
    "torch-cuda-differs": [
        "PyTorch and torchvision were compiled with different CUDA major versions.",
        "version (11.8) mismatches the version that was used to compile\nPyTorch (12.1).",
    ],
    "torch-without-cuda": [
        "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
    ],
}
NO_CODE = "no kernel image is available for execution on the device"
GGML = {
    "no-kernel-image": [
        f"CUDA error: {NO_CODE}\n  current device: 0, in function ggml_cuda_op_mul_mat",
        f"4.00.1 E CUDA error: {NO_CODE}\n4.00.239.816 E   current device: 0, in function",
    ],
    "cpu-build-in-use": [
        'RTX 3060 msg="Dynamic LLM libraries" runners=[cpu]',
        'RTX 3060 msg="Dynamic LLM libraries [cpu_avx2]"',
        "RTX 3060: one possible reason is that llama.cpp was compiled without GPU support",
    ],
    "cpu-fallback": [
        'RTX 3060 msg="inference compute" id=cpu library=cpu',
        "RTX 3060 whisper_backend_init_gpu: no GPU found",
    ],
    "out-of-memory": [
        "device 0: cudaMalloc failed: out of memory",
        "unable to allocate CUDA0 buffer",
        "failed to allocate CUDA0 buffer of size 1",
    ],
    "provider-not-loaded": [
        "LLamaSharp.Backend.Cuda12: The native library cannot be correctly loaded.",
        r"Could not find module 'C:\x\llama_cpp\lib\llama.dll' (or one of its dependencies)",
    ],
}
CTRANSLATE2 = {
    "cpu-build-in-use": ["ValueError: This CTranslate2 package was not compiled with CUDA support"]
}
ANYBODYS = {
    "driver-library-missing": [TENSORFLOW.format("libcuda.so.1") + GPU],
    "driver-unknown-error": ["Cuda error(999), unknown error.", "nvml vram init failure: 999"],
    "driver-mismatch": ["Unable to load CUDA management library: nvml init failure: 18"],
    "driver-not-running": ["Unable to load CUDA management library: nvml init failure: 9"],
    "driver-too-old": [
        "CUDA error(35), CUDA driver",
        "ERROR: This container was built for NVIDIA Driver Release 530.30 or later",
        "ptxas application ptx input, line 9; fatal   : Unsupported .version 7.3; current is 7.1",
    ],
    "torch-without-cuda": ["RTX 3060: CUDA used to build PyTorch: Could not collect"],
    "cudnn-9-missing": ["Could not  load dynamic library 'libcudnn.so.9'"],
    "ptxas-too-old": [
        "libnvvm : error: -arch=compute_120 is an unsupported option",
        "XLA requires ptxas version 11.8 or higher",
    ],
    "nvvm-missing": [
        "Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice.",
        "libdevice not found at ./libdevice.10.bc",
        "Could not find module 'nvvm64_40_0.dll'",
        "OSError: library nvvm not found",
        "RuntimeError: Missing libdevice file.",
        "No PTX compilation provider is available.",
    ],
    "tensorrt-engine-mismatch": [
        "The engine plan file is generated on an incompatible device, expecting compute 8.6",
        "Serialization Error in verifyHeader: 0 (Magic tag does not match)",
        "TensorRT model exported with a different version than 10.11.0.33",
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
        TENSORFLOW.format("libcusolver.so.12"),
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


@pytest.mark.parametrize(
    "log", [TENSORFLOW.format("libnvinfer.so.7") + GPU, TORCH.format(1455, "shm.dll")]
)
def test_what_is_not_of_a_gpu_is_not_said(log: str) -> None:
    assert explain_log(log, TABLE) == ()


def test_where_ours_is_the_same_only_ours_is_told() -> None:
    found = only(f"{TENSORFLOW.format('libcublas.so.11')}{GPU}{OURS}")

    assert (found.code, found.origin, found.severity) == (
        "cuda-11-libraries-missing",
        None,
        "error",
    )
    assert found.libraries == ("libcublasLt.so.11",)
    assert [each.line_number for each in found.evidence] == [3]


def test_ours_is_not_lost_among_many_of_others() -> None:
    others = f"{TENSORFLOW.format('libcublasLt.so.11')}{GPU}" * (MOST_EVIDENCE + 1)

    found = only(f"{others}{OURS}")

    assert (found.origin, found.evidence[0].line) == (None, OURS)


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


def test_that_paddle_finds_no_gpu_follows_from_the_driver_s_error() -> None:
    found = only(
        "Compiled with WITH_GPU, but no GPU found in runtime.\nOriginal Error is Cuda error(999)"
    )

    assert (found.code, found.consequences) == ("driver-unknown-error", ("no-gpu-visible",))


@pytest.mark.parametrize(
    ("gpu", "low", "high", "severity"),
    [
        ("12.1", "8.0", "12.0", "info"),
        ("6.1", "7.0", "12.0", "error"),
        ("7.0", "7.5", "12.0", "error"),
        ("12.0", "5.0", "9.0", "error"),
    ],
)
def test_code_for_an_older_gpu_of_the_same_major_serves(
    gpu: str, low: str, high: str, severity: str
) -> None:
    found = only(
        f"    Found GPU0 NVIDIA GB10 which is of cuda capability {gpu}.\n"
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
        f"    ({low}) - ({high})\n"
    )

    assert (found.code, found.severity) == ("torch-without-this-gpu", severity)


def test_a_row_names_programs_of_others_or_is_not_asked() -> None:
    signal = Signal("missing:cuda:11@others")

    assert asked("missing:cuda:11@others", signal)
    assert asked("missing:*@others", signal)
    assert not asked("missing:cuda:11", signal)
    assert not asked("missing:cuda:11@*", signal)
    assert not asked("missing:cuda:12@others", signal)
    assert not asked("missing:cuda:11@others", Signal("missing:cuda:11@"))


# The table


@pytest.mark.parametrize(("code", "row"), ELSEWHERE, ids=lambda each: str(each)[:30])
def test_both_languages_say_the_same(code: str, row: dict[str, Any]) -> None:
    assert row["program"] in TABLE.programs, code
    (own,) = (each for each in RAW["origin"] if each["code"] == row["program"])
    for text in (row["cause"], row["remedy"] if "remedy" in row else own["own_remedy"]):
        texts = [text[language] for language in LANGUAGES]
        fields = [{name for _, name, _, _ in Formatter().parse(each) if name} for each in texts]
        numbers = [set(re.findall(r"\d+\.\d[\d.]*\d|\d{3,}", each)) for each in texts]
        assert fields[0] == fields[1]
        assert numbers[0] == numbers[1]
        assert not re.search("[\u4e00-\u9fff]", text["en"])
        assert re.search("[\u4e00-\u9fff]", text["zh"])


def test_a_program_without_traces_is_never_that_of_a_whole_log() -> None:
    search = Search(TABLE)
    search.feed(f"{TENSORFLOW.format('libcublas.so.11')}{GPU}", joined=True)

    assert search.origins == []
    assert not TABLE.programs["framework"].remedies


def test_a_row_of_another_program_is_not_the_row_of_its_code() -> None:
    assert not any(row.program for row in TABLE.by_code.values())
    assert sum(row.program != "" for row in TABLE.failures) == len(ELSEWHERE)
    table = parse_failures(RAW)
    assert all(not row.commands and not row.fixable for row in table.failures if row.program)
    pages = {each["code"]: (each["source"],) for each in RAW["origin"]}
    assert all(row.sources == pages[row.program] for row in table.failures if row.program)
    text = {"en": "It", "zh": "它"}
    unknown = {"program": "x", "match": ["fixed text"], "cause": text, "remedy": text}
    rows = [RAW["failure"][0] | {"elsewhere": [unknown]}]
    assert parse_failures({"failure": rows, "library": []}).failures[0].sources == ()


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
