"""Whole verdicts, as a reader accepted them last: a change in any part of one is seen, and read.

`tests/recordings/verdicts.jsonl` has what children of `verify` wrote and how they ended, most of it
made up of real recordings, and what was found in it. The other tests look at one part and say why
it is so; these look at all the rest. Where a change is wanted, `ORTGPU_FIX_RECORD=1` writes what is
found anew, and what git shows is to be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.facts.model import Driver
from ortgpu_fix.verify.advice import advise, pick
from ortgpu_fix.verify.bench import refinements, searches, summarize
from ortgpu_fix.verify.measurement_output import parse_measurement
from ortgpu_fix.verify.model_run import judge_model
from ortgpu_fix.verify.refusal import refusal
from ortgpu_fix.verify.verdict import judge

FILE = Path(__file__).parents[1] / "recordings/verdicts.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def verdict(child: dict[str, Any]) -> object:
    """Return what the small models proved."""
    driver = Driver(**child["driver"]) if child["driver"] else None
    return judge(**{**child, "driver": driver}).to_json()


def measurement(stdout: str, stderr: str) -> Iterator[object]:
    """Yield what a run of a model proves, where the small ones worked and where they did not."""
    measured = parse_measurement(stdout, stderr)
    refused = refusal(measured, "m.onnx")
    if refused is not None:
        yield [refused.code, refused.values]
        return
    bench = summarize([measured], ())
    yield bench.to_json()
    for environment, on_gpu in (("works", True), ("no-gpu", False)):
        report = judge_model(measured, file="m.onnx", environment=environment)  # type: ignore[arg-type]
        configurations = searches(report, on_gpu=on_gpu)
        bench = summarize([measured], configurations)
        best = pick(bench)
        found: dict[str, Any] = {
            "report": report.to_json(),
            "configurations": [[row.key, row.options] for row in configurations],
            "advice": advise(bench, report).to_json(),
        }
        if best is not None:
            found["refined"] = [[row.key, row.options] for row in refinements(best, report)]
        yield found


def found_in(row: dict[str, Any]) -> object:
    if "child" in row:
        return verdict(row["child"])
    return list(measurement(*row["measured"]))


@pytest.mark.parametrize("kind", ["child", "measured"])
def test_a_verdict_is_the_one_that_was_accepted(kind: str) -> None:
    for row in ROWS:
        if kind in row:
            found = json.loads(json.dumps(found_in(row)))
            if os.environ.get("ORTGPU_FIX_RECORD"):
                row["found"] = found

            assert found == row["found"], row[kind]
    if os.environ.get("ORTGPU_FIX_RECORD"):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS]
        FILE.write_text("".join(lines), encoding="utf-8")
