"""Whole plans, as a reader accepted them last: what changes in any part of one is seen, and read.

Each line of `tests/recordings/plans` has the facts of a machine, the options and what was planned.
The other tests look at one part of a plan and say why it is so; these look at all the rest.
`invented.jsonl` are machines on the matrix of `synthetic`, `real.jsonl` on the real one without the
releases that are newer than those in `last.json`. Where a change is wanted, `ORTGPU_FIX_RECORD=1`
writes the plans anew, and what git shows is to be read.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from cut_real import cut_matrix
from odd import RECORD, RECORDINGS

import synthetic
from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.plan.wheels import PYPI, Wheel
from ortgpu_fix.resolve.options import PlanOptions
from ortgpu_fix.resolve.resolver import resolve

FOLDER = RECORDINGS / "plans"
PIECE = 5
"""Machines of one test."""
RECORDED = {
    name: [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]
    for name in ("invented", "real")
}


MATRICES = {"invented": synthetic.matrix(), "real": cut_matrix()}


def plain(value: Any) -> Any:
    """Return a part of a plan as JSON has it: reasons as lists, wheels by their files."""
    if isinstance(value, Wheel):
        return (
            value.file
            if value.index_url == PYPI
            else f"{value.name} {value.version} {value.index_url}"
        )
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return value


def planned(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what differs in the plan for the machine of `row` from an empty one."""
    options = row["options"]
    options |= {key: tuple(options[key]) for key in ("requirements",) if key in options}
    options |= {key: frozenset(options[key]) for key in ("ignored_gpus",) if key in options}
    facts = facts_json.from_json(row["facts"])
    made = resolve(facts, PlanOptions(**options), MATRICES[name])
    parts = made._asdict()
    parts["rejected"] = [
        [" ".join(row.version for row in rows), plain(reasons)]
        for reasons, rows in itertools.groupby(made.rejected, key=lambda row: row.reasons)
    ]
    return {
        key: plain(value) for key, value in parts.items() if value and not key.startswith("matrix")
    }


@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name, rows in RECORDED.items() for first in range(0, len(rows), PIECE)],
)
def test_a_plan_is_the_one_that_was_accepted(name: str, first: int) -> None:
    for row in RECORDED[name][first : first + PIECE]:
        found = json.loads(json.dumps(planned({**row, "options": {**row["options"]}}, name)))
        if RECORD:
            row["plan"] = found

        assert found == row["plan"], row["facts"]


@pytest.fixture(scope="module", autouse=True)
def _recording() -> Any:
    yield
    if RECORD:
        for name, rows in RECORDED.items():
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
            (FOLDER / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
