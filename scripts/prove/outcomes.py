"""What the cases of a proof came to, in today's file of `scripts/prove/results`.

And what those that try random cases have in common: their flags, and their file.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
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


def prove_random(
    about: str | None, proof: str, prove: Callable[[int, int], Mapping[str, Mapping[str, Any]]]
) -> int:
    """Try random cases, write what they came to, and return 1 where something is wrong.

    `prove` gets their count and a seed, and returns the parts of the result: `wrong` in each names
    what is. `about`: the docstring of the proof.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    begin = time.monotonic()
    date = dt.datetime.now(dt.timezone.utc).isoformat(timespec="minutes")
    parts = prove(options.count, options.seed)
    system = f"{platform.system()}, Python {platform.python_version()}"
    seconds = round(time.monotonic() - begin)
    result = {"date": date, "seed": options.seed, "machine": system, **parts, "seconds": seconds}
    file = options.results / f"{proof}-{DATE}.json"
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8")[:4000])
    return int(any(part["wrong"] for part in parts.values()))
