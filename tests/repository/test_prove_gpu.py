"""The script for machines with a GPU, as far as it goes on one without: so that it cannot rot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/prove/gpu.py"
H200 = {
    "schema": 1,
    "platform": {"system": "linux", "machine": "x86_64", "libc": "glibc 2.36"},
    "driver": {"version": "580.159.04", "cuda": "13.0"},
    "gpus": [{"name": "NVIDIA H200", "compute_capability": "9.0", "memory_mib": 143771}],
    "python": {"version": "{}.{}.{}".format(*sys.version_info)},
    "packages": [],
}


def test_it_ends_at_its_time_limit_and_says_what_it_skipped(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        str(SCRIPT),
        "--output",
        str(tmp_path),
        "--limit",
        "0",
        "--tool",
        "none",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "prove_gpu.json").read_text())
    assert document["states"] == {}
    assert document["skipped"]["cpu"] == document["skipped"]["torch"] == "the time was up"


@pytest.mark.slow
@pytest.mark.online
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_one_state_is_mended_up_to_the_driver(tmp_path: Path) -> None:
    facts = tmp_path / "h200.json"
    facts.write_text(json.dumps(H200))
    argv = [sys.executable, str(SCRIPT), "--output", str(tmp_path), "--facts", str(facts)]
    argv += ["--online", "--state", "cpu"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "prove_gpu.json").read_text())
    assert document["skipped"] == {}
    assert (tmp_path / "capture" / "capture.json").is_file()
    state = document["states"]["cpu"]
    assert state["plan"]["answer"]["verdict"] == "fixable"
    assert state["apply"]["exit"] == 0, state["apply"]
    if document["facts"]["answer"]["driver"] is None:
        assert (state["verify"]["exit"], state["verify"]["answer"]["verdict"]) == (6, "no-driver")
        assert state["right_on_gpu"] is False
    assert state["second_plan"]["answer"]["verdict"] == "healthy"
    assert state["undo"]["exit"] == 0
    before, after = (state[when]["answer"]["version"] for when in ("before", "after_undo"))
    assert before == after
