"""Thirty rounds of the storm; the proving script does a thousand."""

from __future__ import annotations

import sys

import pytest

from prove.storm import prove


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="mounts, and signals of Unix")
def test_every_round_ends_whole_or_refused() -> None:
    row = prove(30, seed=20261122, say=False)

    assert row["wrong"] == []
    assert row["rounds"] == row["whole_or_refused"] == 30
    assert row["faults"].keys() >= {"KILL", "TERM", "during recovery", "during undo"}
    assert any(end.endswith("put back") for end in row["ends"])
