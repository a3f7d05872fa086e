"""The transaction under SIGKILL; the proving script does the same a thousand times."""

from __future__ import annotations

import os
import shutil

import prove_faults
import pytest
from prove_transaction import prove


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_anywhere_the_environment_is_whole() -> None:
    count = int(os.environ.get("ORTGPU_FIX_KILLS", "40"))

    ends = prove(count, ["uv", "pip"], seed=20261121)

    assert sum(ends.values()) == count
    assert ends["uv, before"]
    assert ends["pip, before"]


def test_killed_a_few_times() -> None:
    ends = prove(8, ["uv"], seed=7)

    assert sum(ends.values()) == 8


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to inject the faults")
def test_whatever_system_call_fails_the_environment_is_whole() -> None:
    ends = prove_faults.prove("uv")

    assert ends["done"] < sum(ends.values()) / 2
