"""Real error lines, each with its public thread, and what `explain` says of them.

`cases/logs/first` is for whoever writes rules, `second` measures them: nobody looks into it while
a rule is written. A thread belongs to a half by its address alone, so all of its excerpts do.
`code--thread.txt` holds what the thread found to be the cause; `none--…` is a failure of another
kind, of which nothing may be said. `# also:` names what stands in the same excerpt besides.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[1] / "cases" / "logs"
HALVES = ("first", "second")
FILES = sorted(path for half in HALVES for path in (LOGS / half).glob("*.txt"))


def thread(path: Path) -> str:
    return path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ")


def expected(path: Path) -> str:
    return path.stem.split("--")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_thread_is_in_the_half_that_its_address_says(path: Path) -> None:
    address = thread(path)
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+", address)
    assert path.parent.name == HALVES[sha256(address.encode()).digest()[0] % 2]


def test_there_is_enough_of_both_kinds() -> None:
    kinds = Counter(expected(path) == "none" for path in FILES)
    assert kinds[False] >= 200
    assert kinds[True] >= 80
    assert len({thread(path) for path in FILES}) >= 250
