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
NATIVE = "libonnxruntime_providers_shared.so: cannot open shared object file\n"
TORCH = "Torch not compiled with CUDA enabled\n"


def first(log: str) -> Explanation:
    return explain_log(log, TABLE)[0]


# Programs with an onnxruntime of their own


@pytest.mark.parametrize(
    ("trace", "program"),
    [
        ('File "/x/site-packages/sherpa_onnx/offline_recognizer.py", line 374', "sherpa"),
        (r'File "C:\site-packages\sherpa_onnx\offline_recognizer.py", line 374', "sherpa"),
        ("with `ort` v2.0.0-rc.12", "rust"),
        ('ort = { version = "2.0.0-rc.9" }', "rust"),
        ("- **ort crate:** 1.16", "rust"),
        *((f"cargo {verb} --release", "rust") for verb in ("build", "run", "test")),
        (r'"C:\obs-studio\obs-plugins\64bit\onnxruntime_providers_cuda.dll"', "own"),
        ("/usr/lib/libonnxruntime_providers_cuda.so", "own"),
        ("~/.julia/packages/ONNXRunTime/src/capi.jl:100", "own"),
        (r"C:\x\.julia\packages\ONNXRunTime\src", "own"),
        ("error: [obs-backgroundremoval] x", "own"),
        *((f"plugins64/{name}", "own") for name in ("vs-mlrt", "vsmlrt-cuda", "vsort.dll")),
        ("LogNNERuntimeORT: Error", "own"),
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
        r"'C:\\x\\site-packages\\onnxruntime\\capi\\onnxruntime_providers_cuda.dll'",
        "libonnxruntime_providers_cuda.so",
        "import ort; a report 2.0.0",
        "support crate",
    ],
)
def test_the_libraries_of_python_s_package_are_no_program_s_own(path: str) -> None:
    assert first(f"{PYTHON}{path}\n{MISSING.format(12)}").fixable


@pytest.mark.parametrize("log", [BUILD, NATIVE, KERNEL, FALLBACK, CUDNN])
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
        ("onnxruntime-gpu 1.18.0", MISSING.format(11), False),
        ("onnxruntime-gpu 1.18.0", MISSING.format(12), False),  # Microsoft's own index had it
        ("onnxruntime-gpu", MISSING.format(11), False),
        ("onnxruntime-gpu 1.22.0", MISSING.replace("cublasLt.so.{}", "curand.so.10"), False),
        ("onnxruntime-gpu 1.22.0", MISSING.replace("cublasLt.so.{}", "cudnn.so.8"), False),
    ],
)
def test_what_the_release_does_not_want_another_onnxruntime_asked_for(
    release: str, missing: str, *, another: bool
) -> None:
    found = first(f"{PYTHON}{release}\n{missing}")

    assert (found.origin, found.fixable) == (("own", False) if another else (None, True))


def test_a_release_of_this_machine_is_none_of_the_log_s() -> None:
    (found,) = explain_log(PYTHON + MISSING.format(11), TABLE, release="1.22.0")
    assert found.fixable


def test_a_program_that_is_known_says_what_to_do_itself() -> None:
    log = f"onnxruntime-gpu 1.22.0\nsherpa_onnx/x.py\n{MISSING.format(11)}"
    assert first(log).origin == "sherpa"


# A GPU that is not NVIDIA's


@pytest.mark.parametrize(
    "log",
    [
        *(BUILD, NATIVE, KERNEL, FALLBACK, CUDNN, NO_GPU, OLD, TENSORRT, MISSING.format(12)),
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!\n",
    ],
)
def test_on_a_gpu_of_another_maker_nothing_of_nvidia_s_helps(log: str) -> None:
    found = first(f"{PYTHON}GPU: AMD Radeon RX 6800 XT\nonnxruntime-gpu\n{log}")

    assert (found.origin, found.fixable, found.commands) == ("amd", False, ())
    assert found.remedy == TABLE.programs["amd"].remedies["build"]["en"]


def test_torch_has_builds_for_other_makers() -> None:
    found = first(f"AMD Radeon RX 6800 XT\n{TORCH}")

    assert (found.origin, found.commands) == ("amd", ())
    assert "ROCm" in found.remedy


CARDS = [
    *("AMD Radeon(TM) Graphics", "Radeon RX 580", "Radeon 5600XT", "AMD RX 7900", "Intel Arc"),
    *("Intel(R) Arc(TM) A770", "Iris Xe", "Intel(R) Iris(R) Xe Graphics", "UHD Graphics 630"),
]
NVIDIA = [
    *("NVIDIA A10", "Nvidia card", "nvidia-smi", "GeForce MX450", "Quadro P620", "Tesla T4"),
    *(f"{rtx} {number}" for rtx in ("RTX", "rtx") for number in (2080, 3060, 4070, 5090)),
    *("GTX 1080", "GTX 1660"),
]


@pytest.mark.parametrize(
    ("card", "nvidia"),
    [*((card, "") for card in CARDS), *((CARDS[0], nvidia) for nvidia in NVIDIA)],
)
@pytest.mark.parametrize("log", [NO_GPU, MISSING.format(12)])
def test_a_gpu_of_nvidia_s_is_meant_where_one_is_told(card: str, nvidia: str, log: str) -> None:
    found = first(f"{PYTHON}{card}\n{nvidia}\n{log}")
    assert found.origin == (None if nvidia else "amd")


# Images and containers


@pytest.mark.parametrize(
    "trace",
    [
        *("image: lscr.io/linuxserver/x", "quay.io/x/y", "nvcr.io/nvidia/tritonserver:24.01-py3"),
        *("container_name: immich", "tritonserver --model-repository"),
    ],
)
@pytest.mark.parametrize("log", [CUDNN, NATIVE, MISSING.format(12), FALLBACK])
def test_the_libraries_of_a_ready_image_are_its_author_s(trace: str, log: str) -> None:
    found = first(f"{PYTHON}RTX 3060\n{trace}\n{log}")

    assert (found.origin, found.fixable, found.commands) == ("image", False, ())
    assert found.remedy.startswith("The environment is part of the image")
    assert ("NVIDIA GPUs" in found.remedy) is (log == FALLBACK)


def test_an_image_without_tensorrt_may_have_a_tag_with_it() -> None:
    found = first(f"docker pull x\n{TENSORRT}")

    assert found.origin == "image"
    assert "its tag with TensorRT" in found.remedy


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
@pytest.mark.parametrize("log", [OLD, NO_GPU])
def test_in_a_container_the_gpu_is_looked_for_there_first(trace: str, log: str) -> None:
    found = first(f"{PYTHON}{trace}\n{log}")

    assert (found.origin, found.fixable) == ("container", False)
    assert "nvidia-container-toolkit on the host" in found.remedy


@pytest.mark.parametrize(
    "trace", ["restart: now", "all services: up", "the services:", "services: 3"]
)
def test_what_only_looks_like_a_container_is_none(trace: str) -> None:
    assert first(f"{PYTHON}{trace}\n{OLD}").origin is None


def test_on_a_base_image_of_nvidia_s_packages_mend_it() -> None:
    log = f"{PYTHON}FROM nvcr.io/nvidia/pytorch:24.01\n{OLD}"
    assert first(log).origin is None


@pytest.mark.parametrize("alike", [{}, {"build": ["driver", "cudnn"]}])
def test_a_remedy_is_for_what_it_is_said_to_be_alike(alike: dict[str, list[str]]) -> None:
    text = {"en": "Do it", "zh": "做"}
    row = {"code": "x", "name": text, "source": "", "remedy": {"build": text}, "alike": alike}
    table = parse_failures({"failure": [], "library": [], "origin": [row]})

    assert table.programs["x"].remedies == dict.fromkeys(["build", *alike.get("build", [])], text)
    assert not table.programs["x"].unless_at_all


def test_a_library_without_a_major_tells_no_other_onnxruntime() -> None:
    found = first(f"{PYTHON}onnxruntime-gpu 1.22.0\n{MISSING.replace('Lt.so.{}', '.so')}")
    assert found.origin == "framework"
