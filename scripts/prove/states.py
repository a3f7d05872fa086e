"""Let applies, kills, errors of the disk, a user's own changes, undo and forget come in any order.

After every step the environment is held against a model that knows the promises alone; see
`support/states_model.py`. The first sequence that breaks one is printed, and ends the run.

    python scripts/prove/states.py --count 10000 --jobs 2

The counts go into scripts/prove/results/.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test

from prove.outcomes import write
from support.states_model import Environment, counts

PART = 50
"""Sequences of one seed."""


def prove(count: int, start: int = 1, seconds: float = 1e9) -> dict[str, int]:
    """Run `count` sequences, or as many as fit into the `seconds`; return what happened.

    Raises AssertionError with the sequence after which the environment was not as promised.
    """
    counts.clear()
    end, at = time.monotonic() + seconds, start
    while counts["sequences"] < count and time.monotonic() < end:
        chosen = settings(
            max_examples=min(PART, count - counts["sequences"]),
            stateful_step_count=14,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(seed(at)(Environment), settings=chosen)
        except FlakyStrategyDefinition:  # threads flush files: the same step met another call
            counts["begun anew"] += 1
        at += 1
    return dict(sorted(counts.items()))


def main() -> None:
    """Run as the header says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop earlier, after these")
    given = parser.parse_args()
    began = time.monotonic()
    with ProcessPoolExecutor(given.jobs) as pool:
        share = -(-given.count // given.jobs)
        starts = [given.seed + at * 1_000_000 for at in range(given.jobs)]
        begun = [pool.submit(prove, share, start, given.seconds) for start in starts]
        total: Counter[str] = Counter()
        for each in begun:
            total.update(each.result())
    document: dict[str, Any] = {
        "sequences": total.pop("sequences"),
        "steps": total.pop("steps"),
        "asked": given.count,
        "wrong": 0,
        "ends": dict(sorted(total.items())),
        "seconds": round(time.monotonic() - began),
        "seed": given.seed,
    }
    print(write("states", document).read_text())


if __name__ == "__main__":
    main()
