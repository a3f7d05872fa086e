"""The main job with real wheels from the index: one real apply for each CUDA major.

`scripts/prove/apply.py` does the rest of states and Pythons with the same code.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from prove.apply import Case, Workshop
from support.pythons import find_python

pytestmark = [
    pytest.mark.online,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the environments are made for Linux"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, on Linux"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("main-job"))


@pytest.mark.parametrize(
    ("case", "pythons"),
    [
        (Case(cuda="12", python="3.11", state="both"), ("3.11", "3.12", "3.13")),
        (Case(cuda="13", python="3.12", state="gutted"), ("3.12", "3.11", "3.13")),
    ],
    ids=["cuda12-both", "cuda13-gutted"],
)
def test_a_broken_environment_is_mended(
    shop: Workshop, case: Case, pythons: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    found = [(python, path) for python in pythons if (path := find_python(python))]
    if not found:
        pytest.skip(f"none of the Pythons {', '.join(pythons)} is on this machine")
    python, path = found[0]
    case = Case(cuda=case.cuda, python=python, state=case.state)

    outcome = shop.mend(case, path)
    shutil.rmtree(Path(shop.work, case.name), ignore_errors=True)

    with capsys.disabled():
        print(f"\n{case.name}: undone in {outcome.undo_seconds} s, the start of Python included")
    assert outcome.problems == []
