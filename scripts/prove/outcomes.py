"""What the cases of a proof came to, in today's file of `scripts/prove/results`.

And what those that try random cases have in common: their flags, and their file.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import json
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

DATE = dt.datetime.now(dt.timezone.utc).date().isoformat()
RESULTS = Path(__file__).parent / "results"


@functools.cache  # before a result is written into its tree
def commit() -> str:
    """Return the commit that is proved, `-dirty` where files were edited; empty outside git.

    Results that were recorded since are no edit.
    """
    words = ["git", "-C", str(RESULTS.parents[2])]
    edits = ["status", "--porcelain", "-uno", "--", ".", ":(exclude)scripts/prove/results"]
    try:
        name, edited = (
            subprocess.run([*words, *more], capture_output=True, text=True, check=False).stdout
            for more in (["rev-parse", "--short=12", "HEAD"], edits)
        )
    except OSError:
        return ""
    return name.strip() + "-dirty" * bool(edited)


def write(proof: str, document: Mapping[str, Any], results: Path = RESULTS) -> Path:
    """Write today's file of `proof` into the folder `results`, and return it."""
    head = {
        "date": DATE,
        "commit": commit(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }
    results.mkdir(exist_ok=True)
    file = results / f"{proof}-{DATE}.json"
    text = json.dumps({**head, **document}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", "utf-8")
    return file


def known(proof: str, results: Path = RESULTS) -> dict[str, Any]:
    """Return what today's file of `proof` has, nothing where there is none."""
    file = results / f"{proof}-{DATE}.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def recorded(proof: str) -> dict[str, dict[str, Any]]:
    """Return the outcomes in today's file of `proof` by the name of their case."""
    return {row["name"]: row for row in known(proof).get("outcomes", ())}


def record(proof: str, outcome: dict[str, Any], order: Sequence[str], **about: object) -> None:
    """Put an `outcome` into today's file of `proof`, in the place of an earlier one of its case.

    `order` has the names of all cases; `about` is what else is worth knowing.
    """
    rows = recorded(proof) | {outcome["name"]: {**outcome, "commit": commit()}}
    result = {
        **about,
        "passed": sum(not row["problems"] for row in rows.values()),
        "failed": sum(bool(row["problems"]) for row in rows.values()),
        "not_run": [name for name in order if name not in rows],
        "outcomes": [rows[name] for name in order if name in rows],
    }
    write(proof, result)


class Expectations:
    """What was expected, one sentence each, and which of it does not hold."""

    def __init__(self, **about: object) -> None:
        self.result: dict[str, Any] = {**about, "held": []}
        self.wrong: list[str] = []

    def expect(self, what: str, *, holds: bool) -> None:
        """Note where something is not as it must be."""
        print(f"{'ok   ' if holds else 'WRONG'} {what}", flush=True)
        self.result["held"].append(what)
        if not holds:
            self.wrong.append(what)

    def outcome(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return what came of it; `names`: what stands for what is of this machine alone."""
        text = json.dumps({**self.result, "wrong": self.wrong})
        for mine, name in names.items():
            text = text.replace(mine, name)
        found: dict[str, Any] = json.loads(text)
        return found


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
    parts = prove(options.count, options.seed)
    seconds = round(time.monotonic() - begin)
    result = {"seed": options.seed, **parts, "seconds": seconds}
    file = write(proof, result, options.results)
    print(file.read_text(encoding="utf-8")[:4000])
    return int(any(part["wrong"] for part in parts.values()))
