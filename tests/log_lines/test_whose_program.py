"""Whose program wrote a log, and on whose GPU: what is wrong there no package of ours mends."""

from __future__ import annotations

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

TABLE = parse_failures(load_table("failures"))
PYTHON = "at site-packages/onnxruntime/x.py\n"
MISSING = "with error: libcublasLt.so.{}: cannot open shared object file\n"
KERNEL = "CUDA failure 209: no kernel image is available for execution on the device\n"
NO_GPU = "CUDA failure 100: no CUDA-capable device is detected\n"
OLD = "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version\n"
CUDNN = "CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED\n"
TENSORRT = "Failed to create TensorrtExecutionProvider\n"
FALLBACK = "Falling back to ['CPUExecutionProvider'] and retrying.\n"
BUILD = "CUDA execution provider is not enabled in this build.\n"


def first(log: str) -> Explanation:
    return explain_log(log, TABLE)[0]


# Programs with an onnxruntime of their own


@pytest.mark.parametrize(
    ("trace", "program"),
    [
        ('File "/x/site-packages/sherpa_onnx/offline_recognizer.py", line 374', "sherpa"),
        ("with `ort` v2.0.0-rc.12", "rust"),
        ("cargo run --release", "rust"),
        (r'"C:\obs-studio\obs-plugins\64bit\onnxruntime_providers_cuda.dll"', "own"),
        ("/usr/lib/libonnxruntime_providers_cuda.so", "own"),
        (r"C:\x\.julia\packages\ONNXRunTime\src", "own"),
        ("plugins64/vsort.dll", "own"),
        ("github.com/yalue/onnxruntime_go.(*CUDA", "own"),
        ("(Ortex.Native)", "own"),
    ],
)
def test_a_program_with_an_onnxruntime_of_its_own_is_known_also_beside_python(
    trace: str, program: str
) -> None:
    log = f"{PYTHON}{trace}\n{MISSING.format(12)}"
    found = first(log)

    assert (found.origin, found.fixable) == (program, False)
    assert found.commands == ("ortgpu-fix download -d gpu-libraries --libraries --cuda 12",)
    assert "libcublas.so.12" in found.remedy


@pytest.mark.parametrize(
    "path",
    [
        "/x/site-packages/onnxruntime/capi/libonnxruntime_providers_cuda.so",
        r"C:\x\site-packages\onnxruntime\capi\onnxruntime_providers_cuda.dll",
        "libonnxruntime_providers_cuda.so",
        "import ort; a report 2.0.0",
        "support crate",
    ],
)
def test_the_libraries_of_python_s_package_are_no_program_s_own(path: str) -> None:
    assert first(f"{PYTHON}{path}\n{MISSING.format(12)}").fixable


@pytest.mark.parametrize("log", [BUILD, FALLBACK, CUDNN])
def test_beside_an_onnxruntime_of_a_program_no_package_changes_anything(log: str) -> None:
    found = first(f"{PYTHON}onnxruntime_go\nRTX 3060\n{log}")

    assert found.origin == "own"
    assert found.remedy.startswith(
        "The onnxruntime that failed is not the Python package from PyPI"
    )
    assert ("cuDNN version" in found.remedy) is (log == CUDNN)


@pytest.mark.parametrize(
    ("release", "missing", "another"),
    [
        ("onnxruntime-gpu 1.22.0", MISSING.format(11), True),
        ("onnxruntime-gpu 1.27.0", MISSING.format(12), True),
        ("onnxruntime-gpu 1.22.0", MISSING.format(12), False),
        ("onnxruntime-gpu 1.18.0", MISSING.format(12), False),
        ("onnxruntime-gpu 1.22.0", MISSING.replace("cublasLt.so.{}", "cudnn.so.8"), False),
    ],
)
def test_what_the_release_does_not_want_another_onnxruntime_asked_for(
    release: str, missing: str, *, another: bool
) -> None:
    found = first(f"{PYTHON}{release}\n{missing}")

    assert (found.origin, found.fixable) == (("own", False) if another else (None, True))


# A GPU that is not NVIDIA's


@pytest.mark.parametrize(
    "log",
    [
        *(BUILD, KERNEL, NO_GPU, TENSORRT, MISSING.format(12)),
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!\n",
    ],
)
def test_on_a_gpu_of_another_maker_nothing_of_nvidia_s_helps(log: str) -> None:
    found = first(f"{PYTHON}GPU: AMD Radeon RX 6800 XT\nonnxruntime-gpu\n{log}")

    assert (found.origin, found.fixable, found.commands) == ("amd", False, ())
    assert found.remedy == TABLE.programs["amd"].remedies["build"]["en"]


CARDS = [
    *("AMD Radeon(TM) Graphics", "Radeon 5600XT", "AMD RX 7900", "Intel(R) Arc(TM) A770"),
    *("Iris Xe", "UHD Graphics 630"),
]
NVIDIA = [
    *("Nvidia card", "GeForce MX450", "Quadro P620", "Tesla T4", "rtx 3060", "GTX 1660"),
]


@pytest.mark.parametrize(
    ("card", "nvidia"),
    [*((card, "") for card in CARDS), *((CARDS[0], nvidia) for nvidia in NVIDIA)],
)
def test_a_gpu_of_nvidia_s_is_meant_where_one_is_told(card: str, nvidia: str) -> None:
    found = first(f"{PYTHON}{card}\n{nvidia}\n{MISSING.format(12)}")
    assert found.origin == (None if nvidia else "amd")


# Images and containers


@pytest.mark.parametrize(
    "trace",
    [
        *("image: lscr.io/linuxserver/x", "quay.io/x/y", "nvcr.io/nvidia/tritonserver:24.01-py3"),
        *("container_name: immich", "tritonserver --model-repository"),
    ],
)
@pytest.mark.parametrize("log", [MISSING.format(12), FALLBACK])
def test_the_libraries_of_a_ready_image_are_its_author_s(trace: str, log: str) -> None:
    found = first(f"{PYTHON}RTX 3060\n{trace}\n{log}")

    assert (found.origin, found.fixable, found.commands) == ("image", False, ())
    assert found.remedy.startswith("The environment is part of the image")
    assert ("NVIDIA GPUs" in found.remedy) is (log == FALLBACK)


@pytest.mark.parametrize(
    "trace",
    [
        *(
            "podman run -it x",
            "kubectl apply",
            "apiVersion: v1",
            "container_name: x",
            "tritonserver",
        ),
        *("lscr.io/linuxserver/x", "quay.io/x", "nvcr.io/nvidia/pytorch", "restart: always"),
        *("restart: unless-stopped", "services:\n  x:\n    image: y"),
    ],
)
def test_in_a_container_the_gpu_is_looked_for_there_first(trace: str) -> None:
    found = first(f"{PYTHON}{trace}\n{NO_GPU}")

    assert (found.origin, found.fixable) == ("container", False)
    assert "nvidia-container-toolkit on the host" in found.remedy


@pytest.mark.parametrize("trace", ["restart: now", "services: 3"])
def test_what_only_looks_like_a_container_is_none(trace: str) -> None:
    assert first(f"{PYTHON}{trace}\n{OLD}").origin is None


@pytest.mark.parametrize("alike", [{}, {"build": ["driver", "cudnn"]}])
def test_a_remedy_is_for_what_it_is_said_to_be_alike(alike: dict[str, list[str]]) -> None:
    text = {"en": "Do it", "zh": "做"}
    row = {"code": "x", "name": text, "source": "", "remedy": {"build": text}, "alike": alike}
    table = parse_failures({"failure": [], "library": [], "origin": [row]})

    assert table.programs["x"].remedies == dict.fromkeys(["build", *alike.get("build", [])], text)
    assert not table.programs["x"].unless_at_all
