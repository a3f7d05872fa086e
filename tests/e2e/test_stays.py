"""What becomes of the set with real tools and wheels; `scripts/prove/stays.py` does it all."""

from __future__ import annotations

from pathlib import Path

import environments

from prove import stays
from support.prover import Prover

pytestmark = [*environments.REAL_WHEELS, environments.NEEDS_GCC]


def test_the_set_stays_or_the_loss_is_told(tmp_path: Path) -> None:
    prover = Prover(tmp_path, keep=False)
    stays.fill(tmp_path / "wheels")

    stays.prove(prover, "uv sync")

    [row] = prover.rows
    assert row["stays"] or row["line"] or row["told_before"], row
    assert row["build"] == "onnxruntime-gpu", row  # in how many seconds is for a quiet hour
