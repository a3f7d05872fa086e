"""Two of the projects that `scripts/prove/projects.py` changes; all of them take an hour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prove" / "projects.py"
ROWS = ("uv", "requirements-pin")
pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
]


def test_a_project_is_changed_made_anew_upgraded_and_undone(tmp_path: Path) -> None:
    words = ("--only", ",".join(ROWS), "--results", str(tmp_path / "results"))
    argv = [sys.executable, str(SCRIPT), *words]
    done = subprocess.run(argv, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    [result] = (tmp_path / "results").iterdir()
    rows = json.loads(result.read_text("utf-8"))["rows"]
    assert [(row["kind"], row["wrong"], row["which build"]) for row in rows] == [
        (name, [], "onnxruntime-gpu") for name in ROWS
    ]
