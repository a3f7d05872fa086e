"""What is read of every log, as a reader accepted it last: what changes in it is seen, and read.

The other tests look at one failure and say why it is recognised; these look at all the rest: the
lines, the values and what follows from what, also where a terminal wrapped the log, framed it, or
it comes in pieces. Only of the half of the logs that whoever writes rules looks at. Where a change
is wanted, `ORTGPU_FIX_RECORD=1` writes `tests/recordings/explanations.txt` anew, and what git shows
is to be read.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from odd import check_recorded

from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.matcher import explain_log

TESTS = Path(__file__).parents[1]
TEXTS = {"cause", "remedy", "sources", "severity"}
TABLE = parse_failures(load_table("failures"))


def told(log: str | list[str], release: str | None = None) -> str:
    """Return what is found in a log; the texts are those of the table of failures."""
    rows = [
        {name: value for name, value in row._asdict().items() if value and name not in TEXTS}
        for row in explain_log(log, TABLE, release=release)
    ]
    return json.dumps(rows, ensure_ascii=False, default=sorted)


def wrapped(log: str) -> str:
    """Return a log as a narrow terminal shows it."""
    rows = (line[at : at + 76] for line in log.split("\n") for at in range(0, len(line) or 1, 76))
    return "\n".join(rows)


def framed(log: str) -> str:
    """Return a log as a program shows it that breaks lines at spaces and frames them."""
    rows = (part for line in log.split("\n") for part in textwrap.wrap(line, 90) or [""])
    return "\n".join(f"│ {row:90} │" for row in rows)


def explained() -> Iterator[str]:
    for path in sorted((TESTS / "cases/logs/first").glob("*.txt")):
        lines = path.read_text("utf-8").split("\n")
        log = "\n".join(line for line in lines if not line.startswith("# "))
        whole = told(log)
        yield f"{path.stem}: {whole}"
        half = len(log) // 2
        ways = {
            "wrapped": told(wrapped(log)),
            "framed": told(framed(log)),
            "in pieces": told([log[:half], log[half:], log]),
            "of 1.18.1": told(log, "1.18.1"),
            "escaped": told(json.dumps({"log": log})),
        }
        for way, found in ways.items():
            yield f"  {way}: {'the same' if found == whole else found}"


def test_an_explanation_is_the_one_that_was_accepted() -> None:
    check_recorded("explanations.txt", explained())
