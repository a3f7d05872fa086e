"""`python -m _ortgpu_fix_libraries`: is the set here as it was installed?"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ortgpu_fix.companions.build import library_wheel, placeholder_wheel
from ortgpu_fix.companions.library_list import Entry
from ortgpu_fix.matrix.load import companion_modules
from support.local_index import make_wheel

LIBRARY = "nvidia/cublas/lib/libcublas.so.12"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the GPU build, a library and both companions."""
    entry = Entry(when="always", distribution="nvidia-cublas-cu12", path=LIBRARY)
    made = [library_wheel("1.26.0", [entry], companion_modules()), placeholder_wheel("1.26.0")]
    built = make_wheel(
        tmp_path, "onnxruntime-gpu", "1.26.0", files={"onnxruntime/__init__.py": "", LIBRARY: "x"}
    )
    folder = tmp_path / "site"
    for content in (built.read_bytes(), *(wheel.content for wheel in made)):
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            file.extractall(folder)
    return folder


def checked(site: Path, *words: str) -> tuple[int, str]:
    """Run the module there, and return its exit code and what it says."""
    argv = [sys.executable, "-m", "_ortgpu_fix_libraries", *words]
    done = subprocess.run(
        argv, cwd=site, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_what_is_as_it_was_is_right(site: Path) -> None:
    assert checked(site) == (0, "")


def test_another_build_in_its_place_is_told(site: Path, tmp_path: Path) -> None:
    shutil.rmtree(next(site.glob("onnxruntime_gpu-*.dist-info")))
    cpu = make_wheel(tmp_path, "onnxruntime", "1.32.0", files={"onnxruntime/__init__.py": ""})
    with zipfile.ZipFile(cpu) as file:
        file.extractall(site)
    said = "ortgpu-fix: onnxruntime 1.32.0 has replaced onnxruntime-gpu 1.26.0\n"
    assert checked(site) == (1, said)
    shutil.rmtree(next(site.glob("onnxruntime-1.32.0.dist-info")))
    assert "onnxruntime-gpu 1.26.0 is not installed" in checked(site)[1]


def test_a_library_that_is_gone_is_told(site: Path) -> None:
    (site / LIBRARY).unlink()
    assert checked(site) == (1, f"ortgpu-fix: {site / LIBRARY} is missing\n")


def test_a_library_that_cannot_be_loaded_is_told_where_it_is_to_be(site: Path) -> None:
    code, said = checked(site, "--load")
    assert code == 1
    assert "libcublas.so.12" in said
