"""Each event of the child that measures, with all that it can say and with nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ortgpu_fix.guests.bench.measurement import (
    Measurement,
    parse_measurement,
)


def said(*events: dict[str, Any], log: str = "") -> dict[str, Any]:
    """Return the fields that events have changed."""
    found = parse_measurement("\n".join(json.dumps(row) for row in events), log)
    nothing = Measurement()
    return {
        name: getattr(found, name)
        for name in asdict(nothing)
        if getattr(found, name) != getattr(nothing, name)
    }


def test_blocks_of_times_and_failures_add_up() -> None:
    block = {"event": "times", "key": "cpu", "shape": 0, "kind": "steady"}
    found = parse_measurement(
        "\n".join(json.dumps(row) for row in (block | {"ms": [1, 2]}, block | {"ms": [3]}))
    )

    assert found.all_times("cpu", 0, "steady") == [1.0, 2.0, 3.0]
    assert found.all_times("cpu", 1, "steady") == []
    failed = said({"event": "failed", "key": "a"}, {"event": "failed", "key": "b"})["failed"]
    assert [row.key for row in failed] == ["a", "b"]
