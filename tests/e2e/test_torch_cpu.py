"""A real torch for the CPU beside a real onnxruntime-gpu: one copy of each library, in both orders.

The builds for CUDA weigh gigabytes: `scripts/prove/consumers.py` has them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.standin_wheels import Venv, clean_environment, find_uv, make_venv

pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc/self/maps"),
]
RELEASE = "2.13.0"
MOST = 300
"""MB. PyPI's wheel for Linux x86_64 is for CUDA and heavier; a user's pip may know a light one."""
MACHINE = ("--driver", "535.104.12", "--gpu", "8.0")
LOOK = """
import json, sys
for name in sys.argv[1:3]:
    module = __import__(name)
    if name == "torch":
        product = module.ones(8, 8) @ module.ones(8, 8)
        assert float(product.sum()) == 512
    else:
        options = {"providers": ["CUDAExecutionProvider"]}
        try:
            session = module.InferenceSession(sys.argv[3], **options)
        except Exception:
            pass
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps(sorted(maps)))
"""


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of torch for the CPU, from wherever the user's own pip finds one."""
    folder = tmp_path_factory.mktemp("torch")
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--progress-bar", "off"]
    argv += ["--dest", str(folder), f"torch=={RELEASE}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            size = re.search(r"Downloading torch\S* \((\d+)", line)
            if size and int(size[1]) > MOST:
                pip.kill()
                pytest.skip(f"only a torch of {size[1]} MB is offered here")
    found = next(folder.glob("torch-*.whl"), None)
    if found is None:
        pytest.skip(f"no wheel of torch {RELEASE} is offered for this Python")
    return found


@pytest.fixture(scope="module")
def venv(torch: Path, tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """An environment with that torch, in which ortgpu-fix has put onnxruntime-gpu."""
    made = make_venv(tmp_path_factory.mktemp("environment") / "venv", pip=False)
    env = clean_environment()
    install = [find_uv(), "pip", "install", "--quiet", "--python", str(made.python), str(torch)]
    subprocess.run(install, check=True, env=env)
    argv = [sys.executable, "-m", "ortgpu_fix", "--python", str(made.python), *MACHINE]
    argv += ["--apply", "--yes", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.mark.parametrize("order", [("torch", "onnxruntime"), ("onnxruntime", "torch")])
def test_one_copy_of_each_library(venv: Venv, order: tuple[str, str]) -> None:
    model = Path(__file__).parents[2] / "data" / "conv.onnx"
    argv = [str(venv.python), "-I", "-c", LOOK, *order, str(model)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    paths = [Path(path) for path in json.loads(done.stdout.splitlines()[-1])]
    names = Counter(path.name for path in paths)
    assert [name for name, count in names.items() if count > 1] == []
    assert {"libonnxruntime_providers_cuda.so", "libcudnn.so.9", "libtorch_cpu.so"} <= names.keys()
    from_wheels = [path for path in paths if re.match(r"lib(cu|nv)", path.name)]
    assert all(path.is_relative_to(venv.site / "nvidia") for path in from_wheels)


def test_the_check_s_own_computation_with_a_real_torch(venv: Venv) -> None:
    """There is no GPU here, so the CPU stands at both ends: what is called exists, and is exact."""
    folder = Path(__file__).parents[2] / "resolver/verify"
    code = (
        "import json, sys, torch; sys.path.insert(0, sys.argv[1]);"
        "from children import smoke as it;"
        "print(json.dumps([it.found_torch(), it.compute(torch, 'cpu'), it.unavailable(torch)]))"
    )
    argv = [str(venv.python), "-I", "-B", "-c", code, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found, computed, why = json.loads(done.stdout)

    expected: dict[str, Any] = {"product": 0.0, "convolution": 0.0, "error": None}
    assert computed == expected
    assert found["version"].startswith(RELEASE)
    assert found["cuda"] is None
    assert "CUDA" in why
