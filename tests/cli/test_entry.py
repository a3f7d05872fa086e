"""`python -m ortgpu_fix` in a folder of somebody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_modules_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    """A project may have a `json.py`, and a download may bring one."""
    for name in ("json", "signal", "argparse", "threading", "subprocess", "tomllib"):
        (tmp_path / f"{name}.py").write_text(f"print('{name} of the folder'); raise SystemExit(9)")

    done = subprocess.run(
        [sys.executable, "-m", "ortgpu_fix", "--facts", "example", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "of the folder" not in done.stdout + done.stderr
    assert done.returncode in {0, 1}
    assert done.stdout.startswith("{")
