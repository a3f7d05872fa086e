"""A guest is a directory: without it the rest starts, plans and applies."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ortgpu_fix
from matrix import compile_tables
from ortgpu_fix.cli.guests import GUESTS

ROOT = Path(__file__).parents[2]
PROGRAM = Path(ortgpu_fix.__file__).parent
COMMANDS = {"explain": "explain", "machines": "diff", "run": "run"}
"""The command that only this guest has."""


@pytest.fixture(params=GUESTS, scope="module")
def without(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, str]]:
    """A guest, and the environment of a Python that finds the program without it."""
    folder = tmp_path_factory.mktemp(request.param)
    copy = folder / "ortgpu_fix"
    shutil.copytree(PROGRAM, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "guests" / request.param)
    compile_tables.write_compiled(copy / "data", copy / "data", copy / "guests")
    return request.param, {**os.environ, "PYTHONPATH": str(folder), "LANG": "C.UTF-8"}


def ran(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@functools.cache
def whole_plan() -> str:
    environment = {**os.environ, "LANG": "C.UTF-8"}
    return ran(environment, "-m", "ortgpu_fix", "--facts", "example").stdout


def test_every_directory_of_a_guest_is_registered() -> None:
    directories = {path.name for path in (PROGRAM / "guests").iterdir() if path.is_dir()}

    assert directories - {"__pycache__"} == set(GUESTS)


def test_the_rest_starts_and_plans(without: tuple[str, dict[str, str]]) -> None:
    guest, environment = without

    plan = ran(environment, "-m", "ortgpu_fix", "--facts", "example")
    assert (plan.returncode, plan.stdout, plan.stderr) == (1, whole_plan(), "")

    listed = ran(environment, "-m", "ortgpu_fix", "--help")
    assert listed.returncode == 0
    assert f"\n    {COMMANDS.get(guest)} " not in listed.stdout
    assert ran(environment, "-m", "ortgpu_fix", "help", "lock").returncode == 0


def test_a_command_of_a_guest_that_is_not_there_is_unknown(
    without: tuple[str, dict[str, str]],
) -> None:
    guest, environment = without

    refused = ran(environment, "-m", "ortgpu_fix", *_only(guest))

    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def _only(guest: str) -> tuple[str, ...]:
    """Return a command line that only this guest understands."""
    return {
        "bench": ("verify", "data/matmul.onnx"),
        "explain": ("explain", "README.md"),
        "libraries": ("download", "-d", "x", "--libraries"),
        "machines": ("--facts", "example", "--facts", "data/example_machine.json"),
        "run": ("run", "--", sys.executable, "-c", ""),
        "update": ("matrix", "--update"),
    }[guest]
