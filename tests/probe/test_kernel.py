"""A command in a cell of a notebook: its kernel is a Python that starts a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from environments import own_base

from ortgpu_fix.probe.kernel import kernel_python

KERNEL = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[2], shell=True).returncode)"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    folder = tmp_path / "kernel"
    subprocess.run([own_base(), "-m", "venv", "--without-pip", folder], check=True)
    (tmp_path / "ipykernel_launcher.py").write_text(KERNEL)
    return folder / "bin" / "python"


def said_in_a_cell(kernel: Path, environment: Path) -> str:
    """Return what a plan in a cell says on stderr, the server having `environment` active."""
    words = [str(kernel), "-m", "ipykernel_launcher", "-f", f"'{sys.executable}' -m ortgpu_fix"]
    env = {"PATH": os.defpath, "HOME": str(kernel.parents[2]), "VIRTUAL_ENV": str(environment)}
    done = subprocess.run(
        words, cwd=kernel.parents[2], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode in {1, 3}, done.stderr
    return done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_cell_whose_kernel_has_another_python_is_told_of_it(kernel: Path, venv: Path) -> None:
    assert said_in_a_cell(kernel, venv.parents[1]) == (
        f"This is for {venv}, but the notebook's kernel uses another Python. "
        f"For that one: `!ortgpu-fix --python {kernel}`\n"
    )
    assert said_in_a_cell(kernel, kernel.parents[1]) == ""


def test_a_kernel_is_found_by_how_it_was_started(tmp_path: Path) -> None:
    def start(pid: int, parent: int, *words: str) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_text("\0".join(words) + "\0")
        (folder / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n" if parent else "Name:\tx\n")

    start(10, 1, "/srv/bin/python", "-m", "jupyterlab")
    start(20, 10, "/app/bin/python", "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "x")
    start(30, 20, "/bin/sh", "-c", "ortgpu-fix")
    start(40, 30, "python", "-m", "ipykernel")
    start(50, 0, "/bin/sh")
    start(60, 70, "/bin/sh")

    assert kernel_python(30, tmp_path) == Path("/app/bin/python")
    assert kernel_python(40, tmp_path) is None  # which one, its PATH said
    for pid in (1, 10, 50, 60):
        assert kernel_python(pid, tmp_path) is None
