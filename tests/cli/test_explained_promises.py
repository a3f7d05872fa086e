"""What `explain` ends with is not refused by its own plan: of every failure, on every capture."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path

import pytest
from command import run_here

from support.standin_wheels import clean_environment

TESTS = Path(__file__).parents[1]
LOGS = sorted((TESTS / "cases/logs").rglob("*.txt"))
MACHINES = sorted((TESTS / "captures").glob("*/facts.json"))


def pairs() -> list[tuple[Path, Path]]:
    """Return the first log of each failure with the next machine, and with the one after it."""
    firsts = {path.stem.partition("--")[0]: path for path in reversed(LOGS)}
    machines = itertools.cycle(MACHINES)
    return [(log, next(machines)) for log in firsts.values() for _ in range(2)]


@pytest.mark.slow
def test_the_last_line_of_an_explanation_is_no_refusal(tmp_path: Path) -> None:
    environ = clean_environment() | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}
    asked: dict[tuple[str, ...], int] = {}
    refused: list[str] = []
    promised = 0
    for log, machine in pairs():
        facts = ["--facts", str(machine)]
        done = run_here("explain", str(log), *facts, cwd=tmp_path, env=environ)
        assert done.returncode in {0, 1}, (log, machine, done)
        lines = [line.strip() for line in done.stdout.splitlines()]
        commands = [x for x in lines if x.startswith("ortgpu-fix") and x.endswith("--apply")]
        for line in commands:
            promised += 1
            words = shlex.split(line.replace("\\", "/"))[1:-1]
            if "--python" in words and "--facts" not in words:  # typed there
                words[words.index("--python") : words.index("--python") + 2] = facts
            command = tuple(words)
            if command not in asked:
                told = run_here(*command, "--json", cwd=tmp_path, env=environ)
                asked[command] = told.returncode
                json.loads(told.stdout)
            if asked[command] != 1:  # 0: nothing is wrong; 3: nothing can work
                refused.append(f"{log.stem}, {machine.parent.name}: {line}")

    assert promised > 30
    assert refused == []
