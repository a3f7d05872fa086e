"""The transaction under SIGKILL; the proving script does the same a thousand times."""

from __future__ import annotations

import os
import shutil

import pytest

from prove import faults as prove_faults
from prove.transaction import prove, summary


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_anywhere_the_environment_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    count = int(os.environ.get("ORTGPU_FIX_KILLS", "20"))

    rows = prove(count, seed=20261121, jobs=2)

    with capsys.disabled():
        print(f"\nkilled {len(rows)} times, whole every time: {dict(summary(rows))}")
    assert len(rows) == count
    assert "before" in {row["end"] for row in rows}


def test_killed_a_few_times() -> None:
    rows = prove(4, seed=7)

    assert len(rows) == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_whatever_system_call_fails_the_environment_is_whole() -> None:
    ends = prove_faults.prove(stride=15)

    assert ends["not met"] < sum(ends.values()) / 5
    assert any(end.startswith("7 ") for end in ends)
    assert any(end.startswith("4 ") for end in ends)
