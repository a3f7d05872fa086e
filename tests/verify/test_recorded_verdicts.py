"""Whole verdicts, as a reader accepted them last: a change in any part of one is seen, and read.

`tests/recordings/verdicts.jsonl` has what children of `verify` wrote and how they ended, most of it
made up of real recordings, and what was found in it. The other tests look at one part and say why
it is so; these look at all the rest. Where a change is wanted, `ORTGPU_FIX_RECORD=1` writes what is
found anew, and what git shows is to be read.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from odd import RECORD, RECORDINGS, check_recorded, difference, odd

from ortgpu_fix.facts.model import Driver
from ortgpu_fix.verify.advice import advise, pick
from ortgpu_fix.verify.bench import refinements, searches, summarize
from ortgpu_fix.verify.measurement_output import parse_measurement
from ortgpu_fix.verify.model_run import judge_model
from ortgpu_fix.verify.refusal import refusal
from ortgpu_fix.verify.smoke_output import parse_smoke_output
from ortgpu_fix.verify.verdict import judge

FILE = RECORDINGS / "verdicts.jsonl"
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


def rows_of(stdout: str) -> Iterator[dict[str, Any]]:
    for line in stdout.splitlines():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def odd_rows(parse: Callable[[str], object], stdouts: Iterable[str]) -> Iterator[str]:
    """Yield what is read of a row of each kind where one value in it is missing or odd."""
    kinds: dict[str, dict[str, Any]] = {}
    for stdout in stdouts:
        for row in rows_of(stdout):
            whole = kinds.setdefault(str(row.get("event")), {})
            whole |= {key: value for key, value in row.items() if value is not None}
    for kind, whole in sorted(kinds.items()):
        before = repr(parse(json.dumps(whole)))
        yield f"{kind}: {before}"
        for change, row in odd(whole):
            after = repr(parse(json.dumps(row)))
            if after != before:
                yield f"  {change}: {difference(before, after)}"


def test_what_is_read_of_odd_rows_is_what_was_accepted() -> None:
    texts = [row["measured"][0] for row in ROWS if "measured" in row]
    small = [row["child"]["stdout"] for row in ROWS if "child" in row]
    rows = odd_rows(parse_measurement, texts)
    more = odd_rows(lambda stdout: parse_smoke_output(stdout, ""), small)
    check_recorded("odd_rows.txt", itertools.chain(rows, more))


@pytest.mark.parametrize("kind", ["child", "measured"])
def test_a_verdict_is_the_one_that_was_accepted(kind: str) -> None:
    for row in ROWS:
        if kind in row:
            found = json.loads(json.dumps(found_in(row)))
            if RECORD:
                row["found"] = found

            assert found == row["found"], row[kind]
    if RECORD:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS]
        FILE.write_text("".join(lines), encoding="utf-8")
