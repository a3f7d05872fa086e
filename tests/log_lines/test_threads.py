"""What is said of public threads: the cause that a line in them says, and nothing else.

`cases/threads.txt` has of each its address, its month, the causes that are right (after `also`:
what stands in the same text besides), and a short excerpt. What begins with `recorded` was printed
by the real programs. `healthy` is a text in which nothing is wrong, `none` a failure of another
kind, `prose` one in which people tell of a failure and no program's line does: of these nothing is
said. A third is aside, by the project's name alone, for onnxruntime's own threads by their address:
whoever wrote the rules did not look at what is said of it until they were finished. It was run
once, on 2026-11-28, with the labels that it had before prose was left out: of 505 with a cause
411 were right, 79 got no answer and 15 another one (2 of these an effect, which is told as one);
of 88 in which nothing of ours is wrong 3 got an answer. No rule was written after that.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import explain_log

pytestmark = pytest.mark.slow
TABLE = parse_failures(load_table("failures"))
THREADS = Path(__file__).parents[1] / "cases" / "threads.txt"
HEAD = re.compile(
    r"^# ((?:https://|recorded: )[^|\n]+) \| (\d{4}-\d\d) \| ([^|\n]+)$", re.MULTILINE
)
NOTHING = {"healthy", "none", "prose"}


class Thread(NamedTuple):
    address: str
    month: str
    causes: frozenset[str]
    also: frozenset[str]
    text: str

    @property
    def aside(self) -> bool:
        project = re.match(r"https://github\.com/([\w.-]+/[\w.-]+)/", self.address)
        by_project = project and project[1] != "microsoft/onnxruntime"
        key = project[1] if project and by_project else self.address
        return sha256(key.encode()).digest()[0] % 3 == 0

    @property
    def judged(self) -> str:
        """`right`, `wrong` or `silent`; where nothing is to be said `right` or `alarm`."""
        found = explain_log(self.text, TABLE)
        codes = [each.code for each in found if each.severity != "info"]
        if self.causes <= NOTHING:
            return "alarm" if codes else "right"
        codes = codes or [each.code for each in found]
        if not codes:
            return "right" if self.causes & NOTHING else "silent"
        right = codes[0] in self.causes | self.also and self.causes.intersection(codes)
        return "right" if right else "wrong"


def read() -> list[Thread]:
    pieces = HEAD.split(THREADS.read_text("utf-8"))[1:]
    threads = []
    for address, month, causes, text in zip(*[iter(pieces)] * 4, strict=True):
        right, _, also = causes.partition(" also ")
        threads.append(
            Thread(address, month, frozenset(right.split()), frozenset(also.split()), text)
        )
    return threads


ALL = read()
KNOWN = [each for each in ALL if not each.aside]


@cache
def judged() -> dict[Thread, str]:
    return {each: each.judged for each in KNOWN}


def of(verdict: str) -> set[str]:
    return {each.address for each, said in judged().items() if said == verdict}


def test_where_no_line_says_a_failure_nothing_is_said() -> None:
    assert of("alarm") == set()


WRONG = {"https://github.com/microsoft/onnxruntime/issues/5351"}
"""TensorRT's library is missing, and CUDA's is taken to be."""


def test_no_other_cause_is_said_than_the_one_of_the_lines() -> None:
    assert of("wrong") == WRONG


def test_nine_of_ten_that_have_a_line_are_known() -> None:
    ours = Counter(said for each, said in judged().items() if not each.causes <= NOTHING)

    assert ours["right"] >= 0.9 * ours.total(), ours
