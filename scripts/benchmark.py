"""Compare the time of a plan with that of `uv pip install --dry-run` for the same wish.

    python scripts/benchmark.py [RUNS]

Both plan for a fresh environment, in turn, RUNS times (10) after one unmeasured run each, so that
uv has its cache. Printed are the medians and their ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ortgpu_fix.utils.process import install_environment


def seconds(argv: list[str], accepted: set[int]) -> float:
    """Return how long a command took; ends the program where it failed."""
    started = time.perf_counter()
    done = subprocess.run(
        argv, capture_output=True, env=install_environment(os.environ), check=False
    )
    taken = time.perf_counter() - started
    if done.returncode not in accepted:
        sys.exit(done.stderr.decode())
    return taken


def main() -> int:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("runs", nargs="?", type=int, default=10, metavar="RUNS")
    runs: int = arguments.parse_args().runs
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    ours = str(Path(sys.executable).parent / "ortgpu-fix")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder, "venv")
        subprocess.run([uv, "venv", "--quiet", str(venv)], check=True)
        wish = ["onnxruntime-gpu[cuda,cudnn]"]
        theirs = [uv, "pip", "install", "--dry-run", "--quiet", "--python", str(venv), *wish]
        plan = [ours, "--dry-run", "--python", str(venv)]
        times: dict[str, list[float]] = {"uv": [], "ortgpu-fix": []}
        for run in range(runs + 1):
            for name, argv, accepted in (("uv", theirs, {0}), ("ortgpu-fix", plan, {0, 1, 3})):
                taken = seconds(argv, accepted)
                if run:
                    times[name].append(taken)
    medians = {name: statistics.median(row) for name, row in times.items()}
    for name, median in medians.items():
        spread = f"{min(times[name]):.3f} to {max(times[name]):.3f}"
        print(f"{name:12} median {median:.3f} s ({spread}, {runs} runs)")
    print(f"ortgpu-fix takes {medians['ortgpu-fix'] / medians['uv']:.2f} of uv's time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
