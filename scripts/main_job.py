"""Run the main job from a fresh clone: install ortgpu-fix into `.venv` and print its plan.

Needs Python 3.10 or newer and a package index, and nothing else. Where there is no GPU, the plan is
for the example machine that is shipped, so that everyone sees the real thing. Flags are handed on
to ortgpu-fix; with any of them the exit code is its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.first_steps import CannotSetUpError, install, make_venv, run_where_it_can_write

ROOT = Path(__file__).resolve().parents[1]
IMPOSSIBLE = 3
PLANNED = {0, 1}
"""Healthy, or a plan that `--apply` would do."""


def main() -> int:
    """Install where it is not installed yet, run, and fall back to the example machine."""
    run_where_it_can_write(Path(__file__))
    python = make_venv(ROOT / ".venv")
    print("Installing ortgpu-fix", file=sys.stderr, flush=True)
    install(python, ROOT)
    program = [str(python), "-m", "ortgpu_fix"]
    if sys.argv[1:]:
        return subprocess.run([*program, *sys.argv[1:]], check=False).returncode
    # Here `.venv` is looked at, unless another one is active; elsewhere it is the program's own.
    done = subprocess.run([*program, "--dry-run"], cwd=ROOT, check=False).returncode
    if done == IMPOSSIBLE:
        print("\n\nNo usable GPU on this machine. The plan for an example machine:\n", flush=True)
        done = subprocess.run([*program, "--facts", "example"], check=False).returncode
        command = python.with_name("ortgpu-fix")
        print(
            "\n\nNothing was changed. On a machine with a GPU, for the environment to fix:\n"
            f"{command} --python ENVIRONMENT"
        )
    return 0 if done in PLANNED else done


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotSetUpError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # who reads this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
