"""`--driver` and `--gpu` in an existing environment: the check of an image while it is built."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from environments import put, put_onnxruntime, site_packages

from ortgpu_fix.cli import machine
from ortgpu_fix.probe.machine import probe

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="needs gcc, on Linux"
)
A100 = ("--driver", "535.104.12", "--gpu", "A100")
REQUIRED = (("numpy", "1.26.4"), ("flatbuffers", "25.1"), ("protobuf", "6.31"), ("packaging", "25"))
SMALL = {
    ("nvidia-cuda-runtime-cu12", "12.8.90"): ("cuda_runtime", "libcudart.so.12"),
    ("nvidia-cuda-nvrtc-cu12", "12.2.91"): ("cuda_nvrtc", "libnvrtc.so.12"),
    ("nvidia-cublas-cu12", "12.4.2.65"): ("cublas", "libcublas.so.12", "libcublasLt.so.12"),
    ("nvidia-curand-cu12", "10.3.7.37"): ("curand", "libcurand.so.10"),
    ("nvidia-cufft-cu12", "11.0.1.95"): ("cufft", "libcufft.so.11"),
    ("nvidia-cudnn-cu12", "9.6.0.74"): ("cudnn", "libcudnn.so.9"),
}
"""The wheels of `lock --format dockerfile` for that machine, their folders and libraries."""
TOOLKIT = {
    "libcudart.so.12": "12.4.127",
    "libnvrtc.so.12": "12.4.127",
    "libcublas.so.12": "12.4.5.8",
    "libcublasLt.so.12": "12.4.5.8",
    "libcurand.so.10": "10.3.5.147",
    "libcufft.so.11": "11.2.1.3",
}
"""What a toolkit 12.4 has, with the versions in the names of its files."""


class Image:
    """The root of an image with an environment in it, and the variables of its `ENV`."""

    def __init__(self, root: Path, python: Path) -> None:
        self.root, self.python, self.env = root, python, dict[str, str]()
        self.site = site_packages(python)
        put_onnxruntime(self.site)
        for name, version in REQUIRED:
            put(self.site, name, version)

    def wheels(self) -> None:
        for (name, version), (folder, *libraries) in SMALL.items():
            files = {f"nvidia/{folder}/lib/{library}": b"\x7fELF" for library in libraries}
            put(self.site, name, version, files=files)

    def system(self, versions: Mapping[str, str]) -> None:
        """Put real libraries where the loader's cache of this root has them."""
        folder = self.root / "usr/local/cuda-12.4/targets/x86_64-linux/lib"
        folder.mkdir(parents=True)
        source = self.root / "empty.c"
        source.touch()
        for name, version in versions.items():
            real = folder / f"{name.partition('.so')[0]}.so.{version}"
            argv = ["gcc", "-shared", f"-Wl,-soname,{name}", "-o", str(real), str(source)]
            subprocess.run(argv, check=True)
            (folder / name).symlink_to(real.name)
        (self.root / "etc").mkdir()
        (self.root / "etc/ld.so.conf").write_text(f"{folder}\n")
        cache = ["/sbin/ldconfig", "-C", str(self.root / "etc/ld.so.cache")]
        subprocess.run([*cache, "-X", "-f", str(self.root / "etc/ld.so.conf")], check=True)
        (self.root / "sbin").mkdir()
        program = self.root / "sbin/ldconfig"
        program.write_text(f'#!/bin/sh\nexec {" ".join(cache)} "$@"\n')
        program.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/root", **self.env}
        return run_here("--python", str(self.python), *words, cwd=self.root, env=env)

    def plan(self, *words: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run(*words, "--json").stdout)
        return document


def from_system(image: Image) -> None:
    """As on `nvidia/cuda`, with cuDNN 9.1."""
    image.system({**TOOLKIT, "libcudnn.so.9": "9.1.0"})


def with_loader(image: Image) -> None:
    image.wheels()
    [loader] = image.plan(*A100)["companions"]
    put(image.site, loader["name"], loader["version"])


def of_our_dockerfile(image: Image) -> None:
    image.wheels()
    folders = (f"{image.site}/nvidia/{folder}/lib" for folder, *_ in SMALL.values())
    image.env = {"LD_LIBRARY_PATH": ":".join(folders)}


def without_cudnn(image: Image) -> None:
    image.system(TOOLKIT)


def without_loader(image: Image) -> None:
    image.wheels()


def named_outside(image: Image) -> None:
    """The variable names a folder that this image does not have."""
    of_our_dockerfile(image)
    image.env["LD_LIBRARY_PATH"] = image.env["LD_LIBRARY_PATH"].replace("/nvidia/", "/cuda/")


@pytest.fixture
def image(tmp_path: Path, venv: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setattr(machine, "probe", functools.partial(probe, root=root))
    return Image(root, venv)


@pytest.mark.parametrize("make", [from_system, with_loader, of_our_dockerfile])
def test_a_right_image_is_healthy(image: Image, make: Callable[[Image], None]) -> None:
    make(image)
    done = image.run(*A100)

    assert done.returncode == 0, done.stdout
    assert "A100 (compute capability 8.0)" in done.stdout
    assert image.run("--check", *A100).returncode == 0


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (without_cudnn, "Missing CUDA 12 libraries: "),
        (without_loader, "The NVIDIA wheels are installed, but nothing loads them"),
        (named_outside, "The NVIDIA wheels are installed, but nothing loads them"),
    ],
)
def test_a_wrong_image_is_told_why(image: Image, make: Callable[[Image], None], why: str) -> None:
    make(image)
    done = image.run(*A100)

    assert done.returncode == 1
    assert why in done.stdout
    assert image.run("--check", *A100).returncode == 1


def test_the_flags_replace_the_driver_and_the_gpus_alone(image: Image) -> None:
    from_system(image)
    image.env = {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib", "CUDA_VISIBLE_DEVICES": "0"}
    seen, described = (json.loads(image.run("facts", *flags).stdout) for flags in ((), A100))

    assert described["driver"]["version"] == "535.104.12"
    assert [gpu["compute_capability"] for gpu in described["gpus"]] == ["8.0"]
    assert "libcudnn.so.9" in {row["name"] for row in described["libraries"]}
    of_machine = {"driver", "gpus", "sources"}
    assert {key: seen[key] for key in seen.keys() - of_machine} == {
        key: described[key] for key in described.keys() - of_machine
    }


def test_which_machines_the_image_runs_on(image: Image) -> None:
    """1.26.0 has code for 6.0 and newer; cuDNN 9.6 ends at 9.0, the one that it is built for."""
    of_our_dockerfile(image)
    done = image.run(*A100)

    assert "\nRuns on: driver >= 525.60.13, compute capability 6.0 to 9.0\n" in done.stdout
    assert image.plan(*A100)["runs_on"] == {
        "driver": "525.60.13",
        "compute_capabilities": ["6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0"],
    }
