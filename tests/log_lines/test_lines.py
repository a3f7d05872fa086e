"""What the lines of a log show of its program: versions, the Python, its environment, the card."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.lines import ShownInLog
from ortgpu_fix.log_lines.matcher import Search

TABLE = parse_failures(load_table("failures"))
BRIDGE = "[E:onnxruntime:Default, provider_bridge_ort.cc:{} TryGetProviderInfo_CUDA] "
STATE = "[W:onnxruntime:Default, onnxruntime_pybind_state.cc:{} CreateExecutionProviderInstance] "
LINUX = "/opt/app/.venv/lib/python3.10/site-packages/onnxruntime/capi/x.so: cannot open\n"


def search(log: str) -> Search:
    made = Search(TABLE)
    made.feed(log, joined=True)
    return made


def shown(log: str) -> ShownInLog:
    return search(log).shown


def first(log: str) -> Explanation:
    return search(log).explanations()[0]


@pytest.mark.parametrize(
    ("log", "oldest", "newest"),
    [
        (BRIDGE.format(1480), "1.16.0", "1.16.3"),
        (BRIDGE.format(1480) + STATE.format(747), "1.16.3", "1.16.3"),
        (BRIDGE.format(2369), "1.25.0", "1.26.0"),
        (BRIDGE.format(1992) + "onnxruntime_gpu-1.19.2.dist-info", "1.19.2", "1.19.2"),
        (BRIDGE.format(1992) + "onnxruntime_gpu-1.22.0.dist-info", "1.19.0", "1.19.2"),
        ("C:\\x\\onnxruntime_gpu-1.19.2.dist-info\\METADATA", "1.19.2", "1.19.2"),
        ("onnxruntime_gpu-1.20.1-cp311-cp311-win_amd64.whl", "1.20.1", "1.20.1"),
        ("numpy==1.26\nonnxruntime-gpu==1.18.1\n", "1.18.1", "1.18.1"),
        ("Successfully installed numpy-2.0 onnxruntime-gpu-1.18.1", "1.18.1", "1.18.1"),
        ("onnxruntime-gpu==1.18.1\nonnxruntime-gpu==1.19.2\n", None, None),
        ("I have onnxruntime-gpu 1.18.1 and pip install onnxruntime-gpu==1.20.0", None, None),
        ("provider_bridge_ort.cc:7 x", None, None),
    ],
)
def test_the_line_numbers_of_messages_and_names_of_files_are_of_a_version(
    log: str, oldest: str | None, newest: str | None
) -> None:
    assert (shown(log).oldest, shown(log).newest) == (oldest, newest)


@pytest.mark.parametrize(
    ("log", "python"),
    [
        (LINUX, "3.10"),
        ("C:\\Users\\me\\Python310\\lib\\x.py", "3.10"),
        ("x-1.0-cp312-cp312-win_amd64.whl", "3.12"),
        ("onnxruntime_pybind11_state.cpython-39-x86_64-linux-gnu.so", "3.9"),
        ("onnxruntime_pybind11_state.cp311-win_amd64.pyd", "3.11"),
        (LINUX + "/usr/lib/python3.12/x.py", None),
        ("Python 3.10 is what I have", None),
    ],
)
def test_paths_name_the_python(log: str, python: str | None) -> None:
    assert shown(log).python == python


@pytest.mark.parametrize(
    ("path", "environment", "system"),
    [
        (LINUX, "/opt/app/.venv", "linux"),
        ("C:\\app\\venv\\Lib\\site-packages\\x.dll", "C:\\app\\venv", "windows"),
        (
            'Error loading "H:\\AI\\ComfyUI portable\\python_embeded\\Lib\\site-packages\\x.dll"',
            "H:\\AI\\ComfyUI portable\\python_embeded",
            "windows",
        ),
        ("/usr/local/lib/python3.10/dist-packages/x.py", None, "linux"),
        ("/usr/lib/python3/site-packages/x.py", None, "linux"),
        ("/home/me/.local/lib/python3.10/site-packages/x.py", None, "linux"),
        ("/opt/poetry/lib/python3.12/site-packages/poetry/installation/chooser.py", None, "linux"),
    ],
)
def test_paths_name_the_environment_and_the_system(
    path: str, environment: str | None, system: str | None
) -> None:
    assert (shown(path).environment, shown(path).system) == (environment, system)


@pytest.mark.parametrize(
    ("line", "capability"),
    [
        ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible", "12.0"),
        ("Found GPU0 Tesla K80 which is of cuda capability 3.7.", "3.7"),
        ("name: NVIDIA A100, pci bus id: 0, compute capability: 8.0", "8.0"),
        ("|   0  NVIDIA GeForce RTX 5070 Ti  WDDM  |", "12.0"),
        ("compute capability: 8.0\ncompute capability: 7.5", None),
        ("my 5090", None),
    ],
)
def test_programs_print_the_card(line: str, capability: str | None) -> None:
    assert shown(line).capability == capability


ERROR_126 = (
    'LoadLibrary failed with error 126 "" when trying to load'
    ' "C:\\x\\onnxruntime_providers_cuda.dll"'
)


def test_what_a_build_needs_follows_from_the_line_number() -> None:
    found = first(BRIDGE.format(1480) + ERROR_126)

    assert found.code == "provider-not-loaded"
    assert found.cause.endswith(
        "This is onnxruntime 1.16.0 – 1.16.3, which needs CUDA 11 and cuDNN 8; other major versions"
        " do not work."
    )
    assert "CUDA 11" not in first(ERROR_126).cause


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("libcudnn.so.8: cannot open shared object file: No such file or directory\n", True),
        ("libcudnn.so.9: cannot open shared object file: No such file or directory\n", False),
        ("libcublasLt.so.12: cannot open shared object file: No such file or directory\n", False),
        ("Failed to create CUDAExecutionProvider. Require cuDNN 8.* and CUDA 11.*", True),
        ("Failed to create CUDAExecutionProvider. Require cuDNN 8.* and CUDA 12.*", False),
    ],
)
def test_a_build_of_another_index_does_not_need_what_pypi_s_does(said: str, *, told: bool) -> None:
    """1.18.1 for CUDA 12 was on an index of Microsoft's."""
    cause = first("onnxruntime-gpu==1.18.1\n" + said).cause

    assert ("This is onnxruntime 1.18.1, which needs CUDA 11 and cuDNN 8" in cause) == told


def test_what_decides_is_asked_where_something_is_open() -> None:
    asked = [
        first(line).ask
        for line in (
            "CUDA error: invalid device ordinal",
            "CUDA failure 700: an illegal memory access was encountered",
            "No registered plugin EP device found for 'CUDAExecutionProvider' with device_id=0",
        )
    ]

    assert asked == [
        "what does the session request and get? `ortgpu-fix run -- COMMAND` shows it",
        "does the model run on its own? `ortgpu-fix verify MODEL.onnx`",
        "",
    ]


CUBLAS = "CUBLAS failure 1: CUBLAS_STATUS_NOT_INITIALIZED ; GPU=0 ; expr=cublasCreate(&handle)\n"


@pytest.mark.parametrize(
    ("card", "build", "code"),
    [
        ("NVIDIA GeForce RTX 5090", BRIDGE.format(1480), "no-kernel-image"),
        ("NVIDIA GeForce RTX 5090", BRIDGE.format(2195), "cuda-library-failed"),
        ("compute capability: 8.6", BRIDGE.format(1480), "cuda-library-failed"),
    ],
)
def test_a_build_for_cuda_11_has_no_code_for_a_new_card(card: str, build: str, code: str) -> None:
    assert first(f"{card}\n{build}\n{CUBLAS}").code == code
    memory = "CUDA failure 2: out of memory\n"
    assert (first(f"{card}\n{build}\n{memory}").code == "no-kernel-image") is (
        code == "no-kernel-image"
    )


@pytest.mark.parametrize(
    ("log", "language"),
    [("找不到指定的模块", "zh"), ("見つかりません、モジュールが", None), ("not found", None)],
)
def test_a_log_in_chinese_is_known(log: str, language: str | None) -> None:
    assert search(log).language == language
