"""What is told of a process that torch has ended."""

from __future__ import annotations

import pytest

from ortgpu_fix.plan.reasons import reason
from ortgpu_fix.verify.torch_verdict import combine
from ortgpu_fix.verify.verification import CheckedTorch, Verification

BUILD = CheckedTorch(version="2.8.0+cu128", cuda="12.8")
WORKS = Verification(verdict="works", build=BUILD)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [(("first", "SIGSEGV"), "SIGSEGV"), ((), "torch ended the process")],
)
def test_a_torch_that_ends_every_process(evidence: tuple[str, ...], said: str) -> None:
    """The last that was seen of it; where nothing was, that it is so."""
    ended = Verification(verdict="crashed", build=BUILD, evidence=evidence)
    found = combine(WORKS, {"alone": ended, "first": ended, "last": ended})

    [note] = found.notes
    assert note == reason("torch-broken", version="2.8.0+cu128", what=said)
    assert found.verdict == "works"  # what is wrong is torch alone
