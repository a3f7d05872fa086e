"""Real releases of onnxruntime-gpu, a TensorRT found, missing and of the wrong major, and the plan.

What is made up: CUDA's and TensorRT's libraries. They are small ones with the names, places and
symbols that the real providers ask for, and answer every call with "no device": NVIDIA's index and
a GPU are not where this runs. onnxruntime-gpu, its providers, pip's and uv's part are real.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import run_here

from ortgpu_fix.binaries import elf
from ortgpu_fix.data_files import DATA
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.matrix.model import libraries_of
from support.local_index import LocalIndex, make_wheel
from support.standin_wheels import Venv, clean_environment, find_uv, make_venv, state_of

pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins are for Linux"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, on Linux"),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="1.22 to 1.26 have wheels for 3.11"),
]
RIGHT, WRONG = ("10", "10.16.1.11"), ("11", "11.4.0.106")
ASKED = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
APPLICATION = f"""
import onnxruntime
try:
    onnxruntime.InferenceSession({str(DATA / "conv.onnx")!r}, providers={ASKED!r})
except Exception as error:
    print(error)
print({{line.split()[-1] for line in open("/proc/self/maps") if "libnv" in line}})
"""
MACHINE = ["--driver", "570.86.10", "--gpu", "8.0"]


class Bench:
    """An environment with a real onnxruntime-gpu, and stand-ins for NVIDIA's wheels."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder, self.release = folder, release
        self.venv: Venv = make_venv(folder / "venv", pip=False)
        command = [find_uv(), "pip", "install", "-q", "--python", str(self.venv.python)]
        named = [f"onnxruntime-gpu=={release}", "numpy<2.4"]
        subprocess.run([*command, *named], check=True, env=clean_environment())
        capi = self.venv.site / "onnxruntime/capi"
        symbols: set[str] = set()
        for kind in ("cuda", "tensorrt"):
            read = elf.read((capi / f"libonnxruntime_providers_{kind}.so").read_bytes())
            symbols |= {
                name
                for library, names in read.imports.items()
                for name in names
                if library.startswith("libcu") or name.startswith(("create", "getInfer"))
            }
        # An object whose methods all answer nothing: onnxruntime asks it for its plugins.
        registry = (
            "static void *nothing(void) { return 0; }\n"
            f"static void *methods[] = {{{'nothing, ' * 64}}};\nstatic void *object = methods;\n"
            "void *getPluginRegistry(void) { return &object; }\n"
        )
        functions = "".join(
            f'char *{name}(void) {{ return "no device"; }}\n'
            if name.endswith(("String", "Name"))
            else f"int {name}(void) {{ return 100; }}\n"
            for name in sorted(symbols)
        )
        (folder / "stub.c").write_text(registry + functions)

    def library(self, name: str) -> bytes:
        made = self.folder / "made.so"
        source = str(self.folder / "stub.c")
        command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", str(made), source]
        command += ["-Wl,--default-symver"]  # the version is the name, as in the real ones
        subprocess.run(command, check=True)
        return made.read_bytes()

    def nvidia(self, name: str, version: str) -> Path:
        """Make the stand-in of an nvidia wheel: its libraries are where the matrix has them."""
        distribution = load_matrix(torch=False).distributions[name]
        row = next(
            row
            for row in distribution.releases
            if (row.version, row.platform) == (version, "linux_x86_64")
        )
        contents = libraries_of(distribution, row)
        assert contents is not None
        files: dict[str, str | bytes] = {
            path: self.library(library) for library, path in contents.libraries.items()
        }
        return make_wheel(self.folder / "wheels", name, version, files=files)

    def tensorrt(self, major: str, version: str) -> Path:
        """Make a wheel of the shape that TensorRT's have by what their users tell."""
        stems = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
        names = [f"lib{stem}.so.{major}" for stem in stems]
        return make_wheel(
            self.folder / "nvidia",
            "tensorrt-cu12-libs",
            version,
            files={f"tensorrt_libs/{name}": self.library(name) for name in names},
            requires=["nvidia-cuda-runtime-cu12"],
            tag="py3-none-manylinux_2_28_x86_64",
        )

    def plan(self, *argv: str) -> dict[str, Any]:
        said = self.command(*argv, "--json").stdout
        found: dict[str, Any] = json.loads(said)
        return found

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        argv = (*argv, "--python", str(self.venv.python))
        return run_here(*argv, cwd=self.folder, env=clean_environment())

    def run(self) -> str:
        """Run an application that asks for TensorRT; return all that it says."""
        finished = subprocess.run(
            [self.venv.python, "-B", "-c", APPLICATION],  # its bytecode would not be undo's
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        said = finished.stdout + finished.stderr
        assert finished.returncode == 0, said
        return said

    def apply(self, *argv: str) -> subprocess.CompletedProcess[str]:
        done = self.command(*argv, "--apply", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def have_cuda(self, *options: str) -> None:
        """Install the set that is planned without TensorRT, and what loads it."""
        packages = self.plan(*options)["selection"]["packages"]
        for row in packages:
            if row["name"].startswith("nvidia-"):
                self.venv.install(self.nvidia(row["name"], row["version"]))
        self.apply(*options, "--offline")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize(
    ("release", "retried", "code"),
    [
        ("1.23.2", "['CPUExecutionProvider']", "tensorrt-costs-cuda"),
        ("1.26.0", "['CUDAExecutionProvider', 'CPUExecutionProvider']", "tensorrt-unfit"),
    ],
)
def test_what_a_release_does_with_a_tensorrt(
    folder: Path, release: str, retried: str, code: str
) -> None:
    """`retried` is what onnxruntime itself goes on with where TensorRT cannot be loaded."""
    bench = Bench(folder, release)
    options = [*MACHINE, "--ort", release]
    bench.have_cuda(*options)

    def told() -> set[str]:
        rows = bench.plan(*options)["findings"]
        return {row["code"] for row in rows if row["code"].startswith("tensorrt")}

    missing = bench.run()
    assert "libnvinfer.so.10: cannot open shared object file" in missing
    assert f"Falling back to {retried}" in missing
    assert told() == set()

    bench.venv.install(bench.tensorrt(*WRONG))
    wrong = bench.run()
    assert "libnvinfer.so.10: cannot open shared object file" in wrong
    assert f"Falling back to {retried}" in wrong
    assert told() == {code}

    bench.venv.install(bench.tensorrt(*RIGHT))
    right = bench.run()
    assert "cannot open shared object file" not in right
    assert str(bench.venv.site / "tensorrt_libs/libnvinfer.so.10") in right
    assert told() == set()


def test_the_plan_brings_it_and_undo_takes_it_away(folder: Path) -> None:
    """From an index of NVIDIA's shape: a page a project below the root, hashes in the links."""
    bench = Bench(folder, "1.26.0")
    bench.have_cuda(*MACHINE)
    bench.tensorrt(*WRONG)
    bench.tensorrt(*RIGHT)
    before = state_of(bench.venv.site)
    with LocalIndex(folder / "nvidia") as nvidia, LocalIndex(folder / "none") as other:
        root = nvidia.url.removesuffix("/simple")
        wish = ["--provider", "tensorrt", "--tensorrt-index-url", root, "--index-url", other.url]
        planned = bench.plan(*MACHINE, *wish)
        bench.apply(*MACHINE, *wish)

    assert [(row["name"], row["version"]) for row in planned["install"]] == [
        ("tensorrt-cu12-libs", RIGHT[1])
    ]
    assert bench.plan(*MACHINE, "--provider", "tensorrt")["verdict"] == "healthy"
    assert str(bench.venv.site / "tensorrt_libs/libnvinfer.so.10") in bench.run()
    said = bench.command("verify", "--provider", "tensorrt", "--json")
    found = json.loads(said.stdout)
    assert (said.returncode, found["verdict"]) == (6, "no-gpu")
    assert "libnvinfer.so.10" in {row["name"] for row in found["libraries"]}

    undone = bench.command("undo", "--yes")

    assert undone.returncode == 0, undone.stdout + undone.stderr
    bench.command("undo", "--forget", "--yes")
    assert state_of(bench.venv.site) == before
