"""Build, install, and check everything: the test command of the README, and the gate.

Needs Python 3.10 or newer and a package index; brings everything else into `.venv-test`.

    python3 scripts/test.py            everything
    python3 scripts/test.py --fast     without the slow tests and those with real wheels
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from support import first_steps

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if sys.platform == "win32" else "bin")
PYTHON = BIN / ("python.exe" if sys.platform == "win32" else "python")


def run(*argv: str | Path, **environment: str) -> None:
    """Run a step's program; end the whole with its exit code where it fails."""
    env = os.environ | environment
    finished = subprocess.run([str(word) for word in argv], cwd=ROOT, env=env, check=False)
    if finished.returncode != 0:
        print(f"\nfailed: {' '.join(str(word) for word in argv)}", file=sys.stderr)
        sys.exit(finished.returncode)


def install() -> None:
    """Make the environment anew: the tools, and the wheel as a user gets it."""
    first_steps.make_venv(VENV, anew=True)
    first_steps.install(PYTHON, "--upgrade", "pip>=25.1")
    first_steps.install(PYTHON, "--group", "dev", "--group", "ansible")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(PYTHON, "-m", "build", "--outdir", "dist", ".")
    [wheel] = (ROOT / "dist").glob("*.whl")
    first_steps.install(PYTHON, wheel)


def lint() -> None:
    """Look at the form: formatting, lint, types, the directions of imports, schemas."""
    run(BIN / "ruff", "format", "--check", ".")
    run(BIN / "ruff", "check", ".")
    run(BIN / "mypy")
    run(BIN / "lint-imports")
    for schema in sorted((ROOT / "data").glob("*.schema.json")):
        table = schema.with_name(schema.name.replace(".schema.json", ".toml"))
        if table.exists():  # there is one of a document of ours too
            run(BIN / "check-jsonschema", "--schemafile", schema, table)


def test(*, fast: bool) -> None:
    """Run the tests: the fast ones side by side, and they decide the coverage of the core."""
    for old in ROOT.glob(".coverage*"):
        old.unlink()
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # uv is there
    quick = ["-m", "not slow and not online", "-n", "auto", "--dist", "worksteal"]
    coverage = ["--cov", "--cov-report=", "--cov-config=pyproject.toml"]
    run(PYTHON, "-m", "pytest", *quick, *coverage, PATH=path)
    run(PYTHON, "scripts/core_coverage.py")
    if not fast:
        run(PYTHON, "-m", "pytest", "-m", "slow or online", "--durations=8", PATH=path)


def main() -> int:
    """Run all steps, with the time that each took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--fast", action="store_true")
    fast = arguments.parse_args().fast
    first_steps.run_where_it_can_write(Path(__file__))
    steps: list[tuple[str, Callable[[], None]]] = [
        ("install", install),
        ("lint", lint),
        ("test", lambda: test(fast=fast)),
    ]
    for name, step in steps:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        step()
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except first_steps.CannotSetUpError as error:
        sys.exit(str(error))
