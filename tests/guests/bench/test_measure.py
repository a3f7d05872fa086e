"""The user's model, from the command to the page, with a real onnxruntime on the CPU.

A GPU build is simulated where a test says so (`simulated_build`): no GPU was at hand.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documents
import drivers
import environments
import pytest
import simulated_build

from support.pythons import find_python

pytestmark = [
    pytest.mark.usefixtures("heard"),  # an interrupt that is ignored interrupts nobody
    pytest.mark.slow,
    pytest.mark.online,
    pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv"),
]
ROOT = Path(__file__).parents[3]
MODELS = {
    "bench": ROOT / "data" / "bench.onnx",
    **{
        name: ROOT / "tests" / "models" / f"{name}.onnx"
        for name in ("decoder", "half", "loop", "transformer")
    },
}
SMALL = {
    "decoder": "input_ids=1x8",
    "transformer": "input=1x16x128",
}
Run = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def cpu_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the newest onnxruntime for the CPU."""
    base = find_python("3.12") or Path(sys.executable)
    python = environments.make_venv(base, tmp_path_factory.mktemp("cpu") / "venv")
    subprocess.run(["uv", "pip", "install", "-q", "-p", python, "onnxruntime", "numpy"], check=True)
    return python


@pytest.fixture(scope="module")
def gpu_build(cpu_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, as if it were a GPU build."""
    folder = tmp_path_factory.mktemp("gpu") / "venv"
    shutil.copytree(cpu_build.parents[1], folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture
def simulated(gpu_build: Path, stubs: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Simulate a GPU that does what a test wants; returns the environment of the command."""

    def make(**settings: Any) -> dict[str, str]:
        simulated_build.put_skin(environments.site_packages(gpu_build), **settings)
        cards = [drivers.RTX3090]
        return drivers.simulate(
            stubs, tmp_path / "driver", release="550.54.14", cuda=12040, cards=cards
        )

    return make


def start(*argv: str | Path, env: dict[str, str], temporary: Path) -> subprocess.Popen[str]:
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "ortgpu_fix", "verify", *argv],
        env={**os.environ, **env, "TMPDIR": str(temporary), "ORTGPU_FIX_LANG": "en"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def verify(*argv: str | Path, tmp_path: Path, env: dict[str, str] | None = None) -> Run:
    process = start(*argv, env=env or {}, temporary=tmp_path / "temporary")
    out, err = process.communicate(timeout=300)
    assert list((tmp_path / "temporary").iterdir()) == []
    if "--json" in argv:
        documents.check(json.loads(out))
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@pytest.mark.parametrize("name", ["half", "loop"])
def test_a_model_without_a_gpu(cpu_build: Path, tmp_path: Path, name: str) -> None:
    done = verify(MODELS[name], "--python", cpu_build, "--json", tmp_path=tmp_path)

    document = json.loads(done.stdout)
    model = document["model"]
    assert (done.returncode, document["verdict"]) == (6, model["verdict"])
    assert document["verdict"] in {"cpu-fallback", "no-driver", "no-gpu"}
    assert model["providers"][0]["provider"] == "CPUExecutionProvider"
    assert model["providers"][0]["nodes"] == sum(model["operators"].values())
    assert model["gpu"] is None
    assert model["shapes_given"] is False
    assert model["float16"] is (name == "half")
    if name == "loop":
        assert model["operators"]["Loop"] == 1


@pytest.mark.parametrize("name", ["decoder", "transformer"])
def test_a_model_that_works_on_the_gpu(
    gpu_build: Path, tmp_path: Path, name: str, simulated: Callable[..., dict[str, str]]
) -> None:
    shape = SMALL[name]

    done = verify(
        *(MODELS[name], "--shape", shape, "--python", gpu_build, "--json"),
        tmp_path=tmp_path,
        env=simulated(),
    )

    document = json.loads(done.stdout)
    model = document["model"]
    assert (done.returncode, document["verdict"]) == (0, "works"), model
    assert model["gpu"] == "NVIDIA GeForce RTX 3090 (8.6)"
    assert [row["provider"] for row in model["providers"]] == ["CUDAExecutionProvider"]
    called, _, sizes = shape.partition("=")
    assert model["shapes"][0][called] == [int(size) for size in sizes.split("x")]
    assert {row["right"] for row in model["checked"]} == {True}
    assert len(model["checked"]) == (3 if name == "decoder" else 1)


def test_bench_and_page(
    gpu_build: Path, tmp_path: Path, simulated: Callable[..., dict[str, str]]
) -> None:
    """EXHAUSTIVE takes 40 ms longer for a new shape here, which is made up."""
    report = tmp_path / "page.html"
    shapes: list[str | Path] = [
        word for size in (96, 128, 160) for word in ("--shape", f"input=1x3x96x{size}")
    ]

    done = verify(
        *("--bench", *shapes, "--report", report, "--python", gpu_build, "--json"),
        tmp_path=tmp_path,
        env=simulated(
            release="1.26.0",
            search={"EXHAUSTIVE": (40, 0.1, 0.1), "HEURISTIC": (1, 0.1, 0.1), "DEFAULT": (1, 4, 1)},
        ),
    )

    document = json.loads(done.stdout)
    times, advice = document["bench"], document["advice"]
    rows = {row["key"]: row for row in times["configurations"]}
    assert done.returncode == 0
    assert [*rows] == [
        *("cpu", "cuda-exhaustive", "cuda-heuristic", "cuda-default"),
        *(f"cuda-heuristic-{name}" for name in ("no-tf32", "binding", "graph")),
    ]
    assert rows["cuda-heuristic-graph"]["options"] == {"cudnn_conv_algo_search": "HEURISTIC"}
    for row in rows.values():
        assert [timing["shape"] for timing in row["timings"]] == [0, 1, 2]
        for timing in row["timings"]:
            assert timing["runs"] >= 3
            assert timing["low_ms"] <= timing["median_ms"] <= timing["high_ms"]
            assert timing["changed_ms"] is not None
    for timing in rows["cuda-exhaustive"]["timings"]:
        assert timing["first_ms"] >= 40
        assert timing["median_ms"] < 20
    codes = [row["code"] for row in advice["codes"]]
    assert {"searches-new-shapes", "default-is-fallback"} <= {*codes}
    page = report.read_text("utf-8")
    assert "cuda-heuristic-graph" in page
    assert str(tmp_path) in done.stderr  # that it was written


def test_a_fallback_and_its_reason(
    gpu_build: Path, tmp_path: Path, simulated: Callable[..., dict[str, str]]
) -> None:
    env = simulated(on_cpu=["Softmax"])

    done = verify(MODELS["transformer"], "--python", gpu_build, tmp_path=tmp_path, env=env)

    assert done.returncode == 6
    assert "1 of " in done.stdout
    assert "Softmax  no CUDA kernel: softmax_" in done.stdout
    assert "1 to the GPU" in done.stdout


def test_a_page_where_no_model_can_be_run(cpu_build: Path, tmp_path: Path) -> None:
    """What keeps onnxruntime from being imported is on it, and in the document."""
    site, page = environments.site_packages(cpu_build), tmp_path / "page.html"
    trap = site / "ending.pth"
    trap.write_text("import sys; sys.modules['onnxruntime'] = None\n")
    try:
        argv = (MODELS["loop"], "--report", page, "--python", cpu_build)
        done = verify(*argv, "--json", tmp_path=tmp_path)
        said = verify(*argv, tmp_path=tmp_path)
    finally:
        trap.unlink()

    document = json.loads(done.stdout)
    assert (done.returncode, document["model"]["verdict"]) == (6, document["verdict"])
    assert [note["code"] for note in document["model"]["notes"]] == ["import-failed"]
    assert 'class="verdict bad"' in page.read_text("utf-8")
    assert "import of onnxruntime halted" in page.read_text("utf-8")
    assert said.stdout.count("onnxruntime can't be imported\n") == 1


def children_of(marker: Path, *scripts: bytes) -> list[int]:
    """Return the processes that use this folder for temporary files."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(marker).encode() in words and any(script in words for script in scripts):
                found.append(int(entry.name))
    return found


def wait_for_children(marker: Path) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and not children_of(marker, b"measure.py"):
        time.sleep(0.05)


def gone(marker: Path, *, within: float) -> bool:
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        if not children_of(marker, b"smoke.py", b"measure.py") and not any(marker.iterdir()):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_at_any_moment(
    gpu_build: Path,
    tmp_path: Path,
    simulated: Callable[..., dict[str, str]],
    number: signal.Signals,
) -> None:
    temporary = tmp_path / "temporary"
    shape = ("--shape", "input=1x3x64x64", "--shape", "input=1x3x96x96")
    process = start("--bench", *shape, "--python", gpu_build, env=simulated(), temporary=temporary)
    time.sleep(random.Random(f"0{number}").uniform(0.1, 12))  # noqa: S311 - a moment

    process.send_signal(number)
    out, err = process.communicate(timeout=30)

    assert process.returncode in {130, -number, 0}, err
    assert "Traceback" not in err
    assert gone(temporary, within=10)
    del out


def test_what_there_is_so_far(
    gpu_build: Path, tmp_path: Path, simulated: Callable[..., dict[str, str]]
) -> None:
    temporary = tmp_path / "temporary"
    shape = ("--shape", "input=1x3x64x64", "--shape", "input=1x3x96x96")
    process = start(
        *("--bench", *shape, "--python", gpu_build, "--json"),
        env=simulated(create_ms=1500),
        temporary=temporary,
    )
    wait_for_children(temporary)
    time.sleep(11)  # two processes at least have been there

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    document = json.loads(out)
    assert document["bench"]["interrupted"] is True
    assert document["advice"]["codes"][-1]["code"] == "interrupted"
    assert gone(temporary, within=10)


def test_a_model_that_ends_the_process(cpu_build: Path, tmp_path: Path) -> None:
    """It is run where a library that was preloaded ends the process when the model is loaded."""
    site = environments.site_packages(cpu_build)
    trap = site / "ending.pth"
    code = (
        "import os, sys; sys.argv and any('measure.py' in word for word in sys.orig_argv) and "
        "__import__('threading').Timer(0.8, os.kill, "
        f"(os.getpid(), {int(signal.SIGSEGV)})).start()\n"
    )
    trap.write_text(code)
    try:
        model = MODELS["bench"]
        shape = ("--shape", "input=64x3x512x512")
        done = verify(model, *shape, "--python", cpu_build, "--json", tmp_path=tmp_path)
    finally:
        trap.unlink()

    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"]) == (6, "crashed")
    notes = [note["code"] for note in document["model"]["notes"]]
    assert notes[0] == "model-crashes"
