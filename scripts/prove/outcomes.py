"""What the cases of a proof came to, in today's file of `scripts/prove/results`."""

from __future__ import annotations

import datetime as dt
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DATE = dt.datetime.now(dt.timezone.utc).date().isoformat()
RESULTS = Path(__file__).parent / "results"


def recorded(proof: str) -> dict[str, dict[str, Any]]:
    """Return the outcomes in today's file of `proof` by the name of their case."""
    file = RESULTS / f"{proof}-{DATE}.json"
    rows = json.loads(file.read_text())["outcomes"] if file.exists() else []
    return {row["name"]: row for row in rows}


def record(proof: str, outcome: dict[str, Any], order: Sequence[str], **about: object) -> None:
    """Put an `outcome` into today's file of `proof`, in the place of an earlier one of its case.

    `order` has the names of all cases; `about` is what else is worth knowing.
    """
    known: Mapping[str, dict[str, Any]] = recorded(proof) | {outcome["name"]: outcome}
    result = {
        "date": DATE,
        "system": platform.platform(terse=True),
        **about,
        "passed": sum(not row["problems"] for row in known.values()),
        "failed": sum(bool(row["problems"]) for row in known.values()),
        "not_run": [name for name in order if name not in known],
        "outcomes": [known[name] for name in order if name in known],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{proof}-{DATE}.json").write_text(json.dumps(result, indent=1) + "\n")
