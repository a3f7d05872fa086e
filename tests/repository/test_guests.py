"""A guest is a directory: without it the rest starts, plans and applies."""

from __future__ import annotations

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


@pytest.fixture(params=GUESTS)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A guest, and the environment of a Python that finds the program without it."""
    copy = tmp_path / "ortgpu_fix"
    shutil.copytree(PROGRAM, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "guests" / request.param)
    compile_tables.write_compiled(copy / "data", copy / "data", copy / "guests")
    return request.param, {**os.environ, "PYTHONPATH": str(tmp_path), "LANG": "C.UTF-8"}


def ran(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_directory_of_a_guest_is_registered() -> None:
    directories = {path.name for path in (PROGRAM / "guests").iterdir() if path.is_dir()}

    assert directories - {"__pycache__"} == set(GUESTS)


def test_the_rest_starts_and_plans(without: tuple[str, dict[str, str]]) -> None:
    guest, environment = without

    plan = ran(environment, "-m", "ortgpu_fix", "--facts", "example")
    whole = ran({**environment, "PYTHONPATH": ""}, "-m", "ortgpu_fix", "--facts", "example")
    assert (plan.returncode, plan.stdout, plan.stderr) == (1, whole.stdout, whole.stderr)

    listed = ran(environment, "-m", "ortgpu_fix", "--help")
    assert listed.returncode == 0
    assert f"\n    {COMMANDS.get(guest)} " not in listed.stdout
    for command in ("plan", "lock", "matrix", "verify"):
        assert ran(environment, "-m", "ortgpu_fix", "help", command).returncode == 0


def test_the_rest_locks(without: tuple[str, dict[str, str]]) -> None:
    """`lock` ended in an internal error: it named a flag of the guest for several machines."""
    guest, environment = without
    words = ("-m", "ortgpu_fix", "lock", "--facts", "example", "--offline")

    lock = ran(environment, *words)
    whole = ran({**environment, "PYTHONPATH": ""}, *words)

    assert (lock.returncode, lock.stdout, lock.stderr) == (
        *(whole.returncode, whole.stdout, whole.stderr),
    ), guest
    assert whole.returncode in {0, 7}, "as uv's cache has it"


@pytest.mark.slow
def test_the_rest_applies(without: tuple[str, dict[str, str]]) -> None:
    _, environment = without
    test = "tests/apply/test_apply_plan.py::test_from_the_cpu_build_and_back"

    done = ran(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", test)

    assert (done.returncode, " passed" in done.stdout) == (0, True), done.stdout


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
