"""The script for machines with a GPU, as far as it goes on one without: so that it cannot rot."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/prove/gpu.py"
H200 = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.36"},
    "driver": {"version": "580.159.04", "cuda": "13.0"},
    "gpus": [{"name": "NVIDIA H200", "compute_capability": "9.0", "memory_mib": 143771}],
    "python": {"version": "{}.{}.{}".format(*sys.version_info)},
    "packages": [],
}


def test_it_ends_at_its_time_limit_and_says_what_it_skipped(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        str(SCRIPT),
        "--output",
        str(tmp_path),
        "--limit",
        "0",
        "--tool",
        "none",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "prove_gpu.json").read_text())
    assert document["states"] == {}
    assert document["skipped"]["cpu"] == document["skipped"]["torch"] == "the time was up"


def test_wheels_in_parts_are_joined(tmp_path: Path) -> None:
    for number, part in enumerate((b"PK", b"34")):
        (tmp_path / f"a-1-py3-none-any.whl.part0{number}").write_bytes(part)
    folder = str(tmp_path)
    options = ["--output", folder, "--limit", "0", "--tool", "none", "--wheels", folder]
    subprocess.run([sys.executable, str(SCRIPT), *options], check=True, timeout=300)
    assert (tmp_path / "a-1-py3-none-any.whl").read_bytes() == b"PK34"


STAND_INS = {
    "numpy.py": """
float32 = None
class array:
    def __init__(self, values, kind): self.values = values
    def reshape(self, shape): return self
    def __sub__(self, other): return self
    def max(self): return 0.0
def abs(value): return value
""",
    "onnxruntime.py": """
__version__ = "1"
steps = []
class InferenceSession:
    def __init__(self, path, providers): steps.append("onnxruntime")
    def get_providers(self): return ["CUDAExecutionProvider"]
    def get_modelmeta(self): return self
    custom_metadata_map = dict.fromkeys(["input", "expected"], '{"values": [], "shape": []}')
    def run(self, names, given): return [given["input"]]
""",
    "torch.py": """
import os, sys
from types import SimpleNamespace
__version__ = "2+cu128"
version = SimpleNamespace(cuda="12.8")
class Tensor:
    def __init__(self, value): self.value = value
    def __matmul__(self, other): return Tensor(256)
    def __eq__(self, value): return self
    def all(self): return os.environ.get("TORCH_IS_WRONG") is None
full = ones = lambda *shape, **more: Tensor(1)
class Functional:
    def conv2d(self, given, weight):
        before = len(sys.modules["onnxruntime"].steps) if "onnxruntime" in sys.modules else 0
        print("torch after", before)
        return Tensor(72)
nn = SimpleNamespace(functional=Functional())
cuda = SimpleNamespace(is_available=lambda: True)
""",
}
"""What the application imports, as far as it uses it, with a GPU that always answers."""


@pytest.fixture(scope="module")
def prove_gpu() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    ("how", "turns", "models"),
    [
        ("torch-first", ["torch after 0", "torch after 1"], 1),
        ("torch-after", ["torch after 1"], 2),
        ("unchanged", [], 1),
    ],
)
@pytest.mark.parametrize("wrong", [False, True])
def test_torch_computes_beside_onnxruntime_in_turn(
    how: str, turns: list[str], models: int, *, wrong: bool, tmp_path: Path, prove_gpu: ModuleType
) -> None:
    """Both compute in one process, in either order, and a wrong number of either is seen."""
    for name, text in STAND_INS.items():
        (tmp_path / name).write_text(text)
    environ = {"PYTHONPATH": str(tmp_path)} | ({"TORCH_IS_WRONG": "1"} if wrong else {})

    done = subprocess.run(
        [sys.executable, "-c", prove_gpu.APPLICATION, how, "conv.onnx"],
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        timeout=300,
    )

    *said, last = (line for line in done.stdout.splitlines() if line)
    answer = json.loads(last)
    assert said == turns
    assert [row["right"] for row in answer["torch"]] == [not wrong] * len(turns)
    assert len(answer["models"]) == models
    assert prove_gpu.is_right({"answer": answer}) is (not wrong or not turns)


def test_every_model_tells_what_goes_in_and_what_has_to_come_out(prove_gpu: ModuleType) -> None:
    """Without it no application is ever right: the one that images start with has none."""
    assert {path.stem for path in prove_gpu.MODELS} == {"conv", "fft", "matmul"}
    assert all({b"input", b"expected"} <= set(metadata(path)) for path in prove_gpu.MODELS)


def metadata(model: Path) -> list[bytes]:
    """Return the keys of a model's metadata: an entry's field 1, behind the entry's length."""
    return re.findall(
        rb"\x72(?:[\x80-\xff]*[\x00-\x7f])\x0a[\x00-\x7f]([a-z]+)", model.read_bytes()
    )


RIGHT: dict[str, Any] = {"providers": ["CUDAExecutionProvider"], "deviation": 0.0}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ({"models": [RIGHT]}, True),
        ({"models": []}, False),
        ({"models": [RIGHT, {"error": "it failed"}]}, False),
        ({"models": [RIGHT | {"providers": ["CPUExecutionProvider"]}]}, False),
        ({"models": [RIGHT | {"deviation": 0.1}]}, False),
        ({"models": [RIGHT], "torch": [{"cuda": None, "available": False}]}, True),
        ({"models": [RIGHT], "torch": [{"cuda": "12.8", "available": False}]}, False),
        ({"models": [RIGHT], "torch": [{"error": "libcudnn.so.9 is missing"}]}, False),
    ],
)
def test_what_counts_as_right(
    answer: dict[str, Any], *, right: bool, prove_gpu: ModuleType
) -> None:
    """A torch for the CPU has nothing to show, one for CUDA that finds no GPU has failed."""
    assert prove_gpu.is_right({"answer": answer}) is right


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_one_state_is_mended_up_to_the_driver(tmp_path: Path) -> None:
    facts = tmp_path / "h200.json"
    facts.write_text(json.dumps(H200))
    argv = [sys.executable, str(SCRIPT), "--output", str(tmp_path), "--facts", str(facts)]
    argv += ["--online", "--state", "cpu"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "prove_gpu.json").read_text())
    assert document["skipped"] == {}
    assert (tmp_path / "capture" / "capture.json").is_file()
    state = document["states"]["cpu"]
    assert state["plan"]["answer"]["verdict"] == "fixable"
    assert state["apply"]["exit"] == 0, state["apply"]
    if document["facts"]["answer"]["driver"] is None:
        assert (state["verify"]["exit"], state["verify"]["answer"]["verdict"]) == (6, "no-driver")
        assert state["right_on_gpu"] is False
    assert state["second_plan"]["answer"]["verdict"] == "healthy"
    assert state["undo"]["exit"] == 0
    before, after = (state[when]["answer"]["version"] for when in ("before", "after_undo"))
    assert before == after
