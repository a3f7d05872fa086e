"""A real uv and a real SIGKILL: the process group of an apply dies at steps all over the change.

Whatever else may happen, in any order, is in the model of states (`test_states.py`); there a child
dies at a step on the disk, and what uv unpacks is written by hand.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ortgpu_fix.apply.history import recorded_changes
from ortgpu_fix.apply.rollback import recover_interrupted, undo_last
from ortgpu_fix.apply.state_folder import Site
from support.local_index import LocalIndex
from support.standin_changes import HAD, Case, Steps, apply_standins, compare, file_of
from support.standin_wheels import make_set, make_venv, state_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="test_windows.py kills there")


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    """An environment with the CPU-only package, and an index that has what replaces it."""
    wheels = tmp_path / "wheels"
    make_set(wheels)
    with LocalIndex(wheels) as index:
        case = Case(folder=str(tmp_path), wheels=str(wheels), url=index.url)
        venv = make_venv(case.venv.folder, pip=False)
        venv.install(*(wheels / file_of(name) for name in HAD))
        (venv.folder / ".lock").unlink(missing_ok=True)
        yield case


def killed(case: Case, step: int) -> bool:
    """Apply in a process group of its own, which is killed at the step; False: it ended first."""
    child = os.fork()
    if child == 0:
        os.setsid()
        Steps(step).hook()
        apply_standins(replace(case, kill_at=step))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_an_apply_that_was_killed_is_finished_or_undone_by_the_next_run(case: Case) -> None:
    before, site = state_of(case.venv.folder), Site.of(case.venv.target())
    ends = set()
    for step in (1, 3, 9, 20, 40, 1000):
        assert killed(case, step) is (step < 1000)
        recover_interrupted(site)
        committed = any(row.state == "committed" for row in recorded_changes(site))
        ends.add(committed)
        if committed:
            undo_last(site, [(row.key, row.version) for row in case.venv.target().installed])
        compare(before, state_of(case.venv.folder))
    assert ends == {True, False}
