"""Real error lines, each with its public thread, and what `explain` says of them.

`cases/logs/first` is for whoever writes rules, `second` measures them: nobody looks into it while
a rule is written. A thread belongs to a half by its address alone, so all of its excerpts do.
`code--thread.txt` holds what the thread found to be the cause; `none--…` is a failure of another
kind, of which nothing may be said. `# also:` names what stands in the same excerpt besides. Nine
that were of another kind (CUDA's status 700, a torch without CUDA, the system's libraries) were
named by the rows that came on 2026-11-23, after those rows: they tell nothing of unseen texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

LOGS = Path(__file__).parents[1] / "cases" / "logs"
HALVES = ("first", "second")
FILES = sorted(path for half in HALVES for path in (LOGS / half).glob("*.txt"))
TABLE = parse_failures(load_table("failures"))
MISSED = {
    "cudnn-failed--onnxruntime-14186",
    "cudnn-failed--server-4766",
    "conv-search-exhaustive--deep-live-cam-865",
    "cpu-build-in-use--sinner-87",
    "no-wheel--inaspeechsegmenter-110",
}
"""Of the second half: cuDNN failed, and it is said that a library of CUDA did (2); a program's own
word for a build without CUDA; the default that insightface prints of every session, which is told
no more; and where no wheel was found on a Mac, it is said that a Mac has no
CUDA."""


def thread(path: Path) -> str:
    return path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")


def expected(path: Path) -> str:
    return path.stem.split("--")[0]


def test_a_thread_is_in_the_half_that_its_address_says() -> None:
    for path in FILES:
        address = thread(path)
        where = r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+"
        assert re.fullmatch(where, address), path
        assert path.parent.name == HALVES[sha256(address.encode()).digest()[0] % 2], path


def found_in(path: Path) -> tuple[Explanation, ...]:
    lines = path.read_text("utf-8").split("\n")
    return explain_log("\n".join(line for line in lines if not line.startswith("# ")), TABLE)


def said(path: Path) -> list[str]:
    return [each.code for each in found_in(path)]


def alarms(path: Path) -> list[str]:
    return [each.code for each in found_in(path) if each.severity != "info" or each.certain]


def is_right(path: Path) -> bool:
    """Whether the cause is said, and nothing that is not in the log is said before it."""
    lines = path.read_text("utf-8").split("\n")
    also = [code for line in lines if line.startswith("# also: ") for code in line.split()[2:]]
    codes = said(path)
    return expected(path) in codes and codes[0] in {expected(path), *also}


def excerpts(half: str, *, ours: bool) -> Sequence[Path]:
    return [
        path for path in FILES if path.parent.name == half and (expected(path) != "none") == ours
    ]


@pytest.mark.parametrize("half", HALVES)
def test_a_failure_of_another_kind_has_no_cause_here(half: str) -> None:
    """A program for CPUs prints some of it: that is no more than information."""
    assert {
        path.stem: found for path in excerpts(half, ours=False) if (found := alarms(path))
    } == {}


@pytest.mark.slow
def test_the_half_for_which_rules_are_written_is_right() -> None:
    assert [path.stem for path in excerpts("first", ours=True) if not is_right(path)] == []


def test_the_half_that_no_rule_was_written_for_is_right_in_93_of_100() -> None:
    ours = excerpts("second", ours=True)
    missed = {path.stem for path in ours if not is_right(path)}

    assert missed == MISSED
    assert len(missed) <= 0.07 * len(ours)
