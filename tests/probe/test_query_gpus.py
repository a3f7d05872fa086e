"""The script that asks NVIDIA's libraries, against stand-ins for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from drivers import A100, RTX3090

Simulate = Callable[..., dict[str, str]]


PRELUDE = """
import runpy, sys
script, folder = sys.argv[1:3]
sys.path.insert(0, folder)
sys.argv = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""
"""Runs the script with a module path in which its folder goes first."""


def query(environ: Mapping[str, str], *libraries: str, seconds: str = "9") -> dict[str, Any]:
    """Return the last word of each library."""
    pynvml = find_spec("pynvml")
    assert pynvml is not None
    assert pynvml.origin is not None
    script = str(files("ortgpu_fix") / "probe/children/query_gpus.py")
    folder = str(Path(pynvml.origin).parent)
    argv = [sys.executable, "-I", "-S", script, folder, seconds, *libraries]
    answer = subprocess.run(
        argv, env=dict(environ), capture_output=True, text=True, check=False, timeout=120
    )
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    return {row["library"]: row for row in rows}


def test_a_library_that_cannot_be_loaded_is_not_absent(simulate: Simulate, tmp_path: Path) -> None:
    environ = simulate(libraries=())
    for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
        (tmp_path / "driver" / "lib" / name).write_bytes(b"\x7fELF, and then nothing")

    answers = query(environ, "nvml", "libcuda")

    assert answers["nvml"]["state"] == "unloadable"
    assert "libcuda.so.1" in answers["libcuda"]["problem"]


def test_a_gpu_that_is_lost_is_still_counted(simulate: Simulate) -> None:
    environ = simulate(
        release="550.54.14", cuda=12040, cards=[A100, RTX3090], fail="nvmlDeviceGetHandleByIndex_v2"
    )

    assert query(environ, "nvml")["nvml"]["gpus"] == [
        {"problem": "GPU is lost"},
        {"problem": "GPU is lost"},
    ]


def test_a_crash_leaves_what_was_said_before(simulate: Simulate) -> None:
    environ = simulate(release="535.104.12", cuda=12020, cards=[A100], crash="cuInit")

    answers = query(environ, "nvml", "libcuda")

    assert answers["nvml"]["state"] == "answered"
    assert answers["libcuda"]["state"] == "asking"
    assert answers["libcuda"]["call"] == "cuInit"
    assert {"cuda": 12020}.items() <= answers["libcuda"].items()


def test_a_module_of_another_kind(simulate: Simulate, tmp_path: Path) -> None:
    """Not a driver that is absent: one that could not be asked."""
    (tmp_path / "pynvml.py").write_text("raise ImportError('no such thing')\n")
    environ = simulate(release="550.54.14", cuda=12040)
    script = str(files("ortgpu_fix") / "probe/children/query_gpus.py")
    argv = [sys.executable, "-I", "-S", "-c", PRELUDE, script, str(tmp_path), "9", "nvml"]
    answer = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)

    assert json.loads(answer.stdout.splitlines()[-1]) == {
        "library": "nvml",
        "state": "unasked",
        "problem": "pynvml: no such thing",
    }
