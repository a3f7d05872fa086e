"""Environments that uv resolved from PyPI, judged by what their distributions require.

All of them are judged by `scripts/prove/resolved.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import run_here
from judged_sets import Answer, JudgedSet, facts_of, load

from ortgpu_fix.facts import document as facts_json
from ortgpu_fix.matrix.load import load_matrix
from ortgpu_fix.resolve.opened import plan_for
from ortgpu_fix.resolve.options import PlanOptions

SETS = {one.name: one for one in load()}


class Command:
    """The command, asked as a user asks it; a plan with `broken` is what a bad one would say."""

    def __init__(self, folder: Path, **broken: Any) -> None:
        self.folder, self.broken = folder, broken

    def __call__(self, facts: dict[str, Any], flags: Sequence[str]) -> Answer:
        (self.folder / "machine.json").write_text(json.dumps(facts), "utf-8")
        argv = ["--facts", "machine.json", *flags, "--dry-run"]
        env = {"HOME": str(self.folder), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        said, shown = (
            run_here(*argv, *more, cwd=self.folder, env=env) for more in (["--json"], [])
        )
        plan = {**json.loads(said.stdout), **self.broken}
        return Answer(plan, shown.stdout, shown.returncode)


SAMPLE = [
    ("rtmlib onnxruntime nvidia-cublas-cu12==12.4.5.8 on 3.13", "RTX 4090"),
    ("surya-ocr onnxruntime torch==2.5.* on 3.10", "RTX 5060"),
    ("onnxruntime==1.22.1 tensorflow[and-cuda] on 3.10", "GTX 1080"),
]
"""An environment on a machine: each kind of what is beside onnxruntime, and each machine."""


@pytest.mark.parametrize(("name", "gpu"), SAMPLE)
def test_no_plan_for_an_environment_of_pypi_breaks_what_it_does_not_name(
    name: str, gpu: str, tmp_path: Path
) -> None:
    judged = JudgedSet(SETS[name], Command(tmp_path))

    assert [*judged.wrong([gpu])] == []
    assert judged.seen["plans"] == 1 + ("torch" in judged.whole.rows)


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ({"install": [], "companions": []}, "fastembed would lack onnxruntime"),
        ({"verdict": "healthy"}, "healthy has exit code 1"),
        ({"needs": ["--torch match"]}, "is not accepted"),
    ],
)
def test_the_judge_finds_what_is_wrong(broken: dict[str, Any], what: str, tmp_path: Path) -> None:
    judged = JudgedSet(SETS["fastembed jax[cuda12] on 3.10"], Command(tmp_path, **broken))

    assert any(what in line for line in judged.wrong(["RTX 4090"]))


def test_what_would_unlock_more_is_found_at_once_beside_260_distributions() -> None:
    """Each of many combinations was tried with every torch: it took a second."""
    one, matrix = SETS["open-webui torch==2.10.* on 3.11"], load_matrix()
    facts = facts_json.from_json(facts_of(one.rows, one.python, "A100"))

    def seconds(*, unlocking: bool) -> float:
        begin = time.process_time()
        plan_for(facts, PlanOptions(), matrix, unlocking=unlocking)
        return time.process_time() - begin

    without, found = (min(seconds(unlocking=each) for _ in range(2)) for each in (False, True))

    assert len(facts.packages) == 260
    assert found < without + 0.4
