"""The script that runs in the target: which GPUs it uses, and the models that it runs."""

from __future__ import annotations

import cmath
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import drivers
import pytest

from ortgpu_fix.verify.children import libraries
from ortgpu_fix.verify.verdict import judge

DATA = Path(__file__).parents[2] / "data"
SCRIPT = Path(str(files("ortgpu_fix") / "verify/children/smoke.py"))
Simulate = Callable[..., dict[str, str]]

STAND_IN = """
__version__ = "1.26.0"


class SessionOptions:
    pass


class InferenceSession:
    def __init__(self, path, options, providers, enable_fallback):
        raise RuntimeError(repr(providers))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "onnxruntime.py").write_text(STAND_IN)
    (folder / "numpy.py").write_text("")
    return folder


def smoke(
    site: Path, environ: dict[str, str], *arguments: str, code: str = ""
) -> list[dict[str, Any]]:
    """Run the script and return its answers."""
    argv = [sys.executable, *(["-c", code] if code else [str(SCRIPT)]), *arguments]
    merged = {**os.environ, **environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [*argv, f"--scratch={site}", str(DATA / "conv.onnx")],
        env=merged,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def runs(answers: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    return [(row["gpu"], row["error"]) for row in answers if row["event"] == "model"]


def test_one_gpu_is_used_as_an_application_would(site: Path, simulate: Simulate) -> None:
    answers = smoke(site, simulate(release="535.104.12", cuda=12020, cards=[drivers.A100]))
    [row] = [row for row in answers if row["event"] == "driver"]
    assert (row["cuda"], row["init"], row["error"]) == ("12.2", 0, None)
    assert Path(row["library"]).name == "libcuda.so.535.104.12"
    assert runs(answers) == [
        ("NVIDIA A100-SXM4-80GB (8.0)", "RuntimeError: ['CUDAExecutionProvider']")
    ]
    assert answers[-1]["event"] == "end"


PLUGIN = """
def get_library_path():
    return {library!r}
def get_ep_name():
    return {name!r}
"""
WITH_PLUGIN = """
__version__ = "1.32.0"
REGISTERED = []


class Device:
    def __init__(self, ep_name, number):
        self.ep_name, self.number = ep_name, number
    def __repr__(self):
        return f"{self.ep_name} {self.number}"


def register_execution_provider_library(name, path):
    if "absent" in path:
        raise RuntimeError("Failed to load library " + path)
    REGISTERED.append(name)


def get_ep_devices():
    return [Device("Other", 0), *(Device(name, at) for name in REGISTERED for at in range(2))]


class SessionOptions:
    def add_provider_for_devices(self, devices, options):
        self.devices = devices


class InferenceSession:
    def __init__(self, path, options, providers, enable_fallback):
        raise RuntimeError(repr((providers, options.devices)))
"""


@pytest.mark.parametrize(
    ("name", "library", "said"),
    [
        ("NvTensorRTRTXExecutionProvider", "there.so", "[NvTensorRTRTXExecutionProvider 0]"),
        ("CUDAExecutionProvider", "absent.so", "the plugin offers no device: CUDAExecution"),
    ],
)
def test_a_plugin_is_registered_and_its_devices_are_asked_for(
    name: str, library: str, said: str, site: Path, simulate: Simulate
) -> None:
    (site / "onnxruntime.py").unlink()
    for module, text in (
        ("onnxruntime", WITH_PLUGIN),
        ("onnxruntime_ep_openvino", "raise SystemExit"),
        ("onnxruntime_ep_nv_x", PLUGIN.format(library=str(site / library), name=name)),
    ):
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(text)
    environ = simulate(release="580.95.05", cuda=13000, cards=[drivers.A100])
    [(gpu, error)] = runs(smoke(site, environ))

    assert gpu == "NVIDIA A100-SXM4-80GB (8.0)"
    assert said in error
    (site / "onnxruntime/capi").mkdir()
    (site / "onnxruntime/capi/libonnxruntime_providers_cuda.so").touch()
    assert "'SessionOptions' object has no attribute 'devices'" in runs(smoke(site, environ))[0][1]


def test_tensorrt_rtx_is_looked_for_where_it_is_asked_for(site: Path, simulate: Simulate) -> None:
    """Beside a CUDA provider in the folder, and beside a plugin for CUDA."""
    name = "NvTensorRTRTXExecutionProvider"
    (site / "onnxruntime.py").unlink()
    for module, text in (
        ("onnxruntime", WITH_PLUGIN),
        ("onnxruntime_ep_cuda", "raise SystemExit"),
        ("onnxruntime_ep_nv_x", PLUGIN.format(library=str(site / "there.so"), name=name)),
    ):
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(text)
    (site / "onnxruntime/capi").mkdir()
    (site / "onnxruntime/capi/libonnxruntime_providers_cuda.so").touch()
    environ = simulate(release="580.95.05", cuda=13000, cards=[drivers.A100])
    answers = smoke(site, environ, "--provider=tensorrt-rtx")

    assert f"(None, [{name} 0])" in runs(answers)[0][1]
    assert [row["provider"] for row in answers if row["event"] == "start"] == [name]
    shutil.rmtree(site / "onnxruntime_ep_nv_x")
    without = smoke(site, environ, "--provider=tensorrt-rtx")
    assert runs(without) == []
    output = "\n".join(map(json.dumps, without))
    found = judge(stdout=output, stderr="", returncode=0, timed_out=False, driver=None)
    assert (found.verdict, dict(found.values)) == (
        "library-missing",
        {"library": "onnxruntime_ep_nv_tensorrt_rtx"},
    )


def test_one_gpu_of_each_kind_is_used(site: Path, simulate: Simulate) -> None:
    cards = [drivers.A100, drivers.A100, drivers.RTX3090]
    answers = smoke(site, simulate(release="535.104.12", cuda=12020, cards=cards))
    assert runs(answers) == [
        ("NVIDIA A100-SXM4-80GB (8.0)", "RuntimeError: ['CUDAExecutionProvider']"),
        (
            "NVIDIA GeForce RTX 3090 (8.6)",
            "RuntimeError: [('CUDAExecutionProvider', {'device_id': '2'})]",
        ),
    ]


def test_a_session_for_tensorrt_leaves_cuda_the_rest(site: Path, simulate: Simulate) -> None:
    cards = [drivers.A100, drivers.RTX3090]
    environ = simulate(release="535.104.12", cuda=12020, cards=cards)
    answers = smoke(site, environ, "--provider=tensorrt")

    assert answers[0]["provider"] == "TensorrtExecutionProvider"
    (_, first), (_, second) = runs(answers)
    assert first == "RuntimeError: ['TensorrtExecutionProvider', 'CUDAExecutionProvider']"
    assert second.count("{'device_id': '1'}") == 2


def test_a_gpu_that_is_ignored_is_left_alone(site: Path, simulate: Simulate) -> None:
    cards = [drivers.A100, drivers.RTX3090]
    environ = simulate(release="535.104.12", cuda=12020, cards=cards)
    [(gpu, error)] = runs(smoke(site, environ, "--ignore=8.0"))
    assert gpu == "NVIDIA GeForce RTX 3090 (8.6)"
    assert "'device_id': '1'" in error
    assert [gpu for gpu, _ in runs(smoke(site, environ, "--ignore=8.0", "--ignore=8.6"))] == [None]


def test_a_driver_without_a_gpu(site: Path, simulate: Simulate) -> None:
    environ = simulate(release="535.104.12", cuda=12020, cards=[]) | {"CUDA_VISIBLE_DEVICES": ""}
    answers = smoke(site, environ)
    [row] = [row for row in answers if row["event"] == "driver"]
    assert (row["cuda"], row["init"], row["gpus"]) == ("12.2", 100, [])
    assert answers[0]["visible"] == ""
    assert runs(answers) == [(None, "RuntimeError: ['CUDAExecutionProvider']")]


def test_a_driver_that_hangs_is_given_up(site: Path, simulate: Simulate) -> None:
    environ = simulate(release="535.104.12", cuda=12020, cards=[drivers.A100], hang=["cuInit"])
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parents[1])!r})\n"
        "from children import common, smoke\n"
        "common.WEDGED = 1\n"
        "smoke.main(sys.argv[1:])\n"
    )
    assert smoke(site, environ, code=code)[-1] == {"event": "doing", "what": "cuInit"}


def metadata(name: str) -> dict[str, Any]:
    """Return what a model's metadata hold: the input, and what must come of it."""
    content = (DATA / f"{name}.onnx").read_bytes()
    found = re.findall(rb'(input|expected)\x12..?(\{"shape":.*?\]\})', content)
    return {key.decode(): json.loads(value) for key, value in found}


def test_what_must_come_of_the_fourier_transform() -> None:
    """No CPU kernel can be asked, so it is computed here once more, another way."""
    rows = metadata("fft")
    assert (rows["input"]["shape"], rows["expected"]["shape"]) == ([4, 32], [4, 17, 2])
    signal, expected = rows["input"]["values"], iter(rows["expected"]["values"])

    def transform(values: list[complex]) -> list[complex]:
        if len(values) == 1:
            return values
        even, odd = transform(values[::2]), transform(values[1::2])
        half = len(values) // 2
        turned = [cmath.exp(-1j * cmath.pi * at / half) * odd[at] for at in range(half)]
        pairs = list(zip(even, turned, strict=True))
        return [a + b for a, b in pairs] + [a - b for a, b in pairs]

    for row in range(4):
        for value in transform(signal[row * 32 : row * 32 + 32])[:17]:
            assert (next(expected), next(expected)) == pytest.approx(
                (value.real, value.imag), abs=2e-5
            )
    assert next(expected, None) is None


def test_the_models_are_those_that_the_script_makes(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs onnx to make the models")
    script = Path(__file__).parents[2] / "scripts/matrix/make_models.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, stdout=subprocess.DEVNULL)
    made = sorted(tmp_path.glob("*.onnx"))
    assert [path.name for path in made] == ["conv.onnx", "fft.onnx", "matmul.onnx", "start.onnx"]
    for path in made:
        assert path.read_bytes() == (DATA / path.name).read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "libcuda.so.1",
        "libnvinfer.so.10",
        "libcudnn_engines_precompiled.so.9",
        "libnvrtc-builtins.so.12.8",
        "cublasLt64_12.dll",
        "onnxruntime_providers_cuda.dll",
    ],
)
def test_names_of_the_libraries_of_cuda(name: str) -> None:
    assert libraries.CUDA_NAMES.fullmatch(name)
