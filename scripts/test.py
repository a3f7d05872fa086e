"""Build, install, and check everything: the test command of the README, and the gate.

Needs Python 3.10 or newer and a package index; brings everything else into `.venv-test`.

    python3 scripts/test.py            the fast tests: six minutes on two cores, 0.7 GB
    python3 scripts/test.py --all      the gate: also the coverage of the core, and real wheels
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from support import first_steps

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if sys.platform == "win32" else "bin")
GIGABYTES = 35
"""What `--all` and its downloads take of the disk where nothing was downloaded before, at most."""
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
    groups = [f"--group={ROOT / 'pyproject.toml'}:{name}" for name in ("dev", "ansible")]
    first_steps.install(PYTHON, "--no-compile", *groups)  # most of it nobody imports
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
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")
    run(BIN / "zizmor", "--offline", "--quiet", *workflows, "action.yml")
    for schema in sorted((ROOT / "data").glob("*.schema.json")):
        table = schema.with_name(schema.name.replace(".schema.json", ".toml"))
        tables = [*filter(Path.exists, [table]), *ROOT.glob(f"resolver/guests/*/{table.name}")]
        if tables:  # there is one of a document of ours too
            run(BIN / "check-jsonschema", "--schemafile", schema, *tables)


def test(*, everything: bool) -> None:
    """Run the fast tests; for `everything` also their coverage of the core, and the slow ones.

    Says at the end what was left out, and why.
    """
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # uv is there
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder, f"{part}.xml") for part in ("fast", "slow", "alone")]
        brief = "-rfE"  # what was left out is summed up below
        beside = ["-n", "auto", "--dist"]
        quick = [brief, "-m", "not slow and not online", *beside, "worksteal"]
        coverage = ["--cov", "--cov-report=", "--cov-config=pyproject.toml"] if everything else []
        run(PYTHON, "-m", "pytest", *quick, *coverage, f"--junitxml={reports[0]}", PATH=path)
        if everything:
            run(PYTHON, "scripts/core_coverage.py")
            slow = "(slow or online) and"
            words = [brief, *beside, "loadfile", "--durations=25", f"--junitxml={reports[1]}"]
            run(PYTHON, "-m", "pytest", *words, "-m", f"{slow} not alone", PATH=path)
            words = [brief, f"--junitxml={reports[2]}", "-m", f"{slow} alone"]
            run(PYTHON, "-m", "pytest", *words, PATH=path)
        left_out = Counter(
            skipped.get("message", "")
            for report in reports
            if report.exists()
            for skipped in ET.parse(report).iter("skipped")  # noqa: S314 - our own file
        )
    for reason, count in left_out.most_common():
        print(f"left out: {count} test{'s' if count > 1 else ''}: {reason}")
    if not everything:
        print("left out: what needs real wheels or takes long: `scripts/test.py --all` has it")


def main() -> int:
    """Run all steps, with the time that each took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--all", action="store_true")
    everything: bool = arguments.parse_args().all
    first_steps.run_where_it_can_write(Path(__file__))
    first_steps.have_a_home()
    steps: dict[str, Callable[[], None]] = {
        "install": install,
        "lint": lint,
        "test": lambda: test(everything=everything),
    }
    free = shutil.disk_usage(tempfile.gettempdir()).free >> 30
    if everything and free < GIGABYTES:
        print(f"{free} GiB are free here: what installs real wheels takes up to {GIGABYTES}")
    began = time.monotonic()
    for number, (name, step) in enumerate(steps.items(), 1):
        started = time.monotonic()
        print(f"== {number} of {len(steps)}: {name}", flush=True)
        step()
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"All is well, in {(time.monotonic() - began) / 60:.0f} minutes.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except first_steps.CannotSetUpError as error:
        sys.exit(str(error))
