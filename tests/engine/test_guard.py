"""An engine that outlives whoever started it is found and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ortgpu_fix.engine import guard as engine_guard
from ortgpu_fix.engine.guard import guarded_command, wait_for_engine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows runs engines unguarded")


def test_the_guard_becomes_the_engine(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    done = subprocess.run(
        guarded_command([sys.executable, "-c", code, "a b", "-x"], tmp_path / "lock"),
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout == "['a b', '-x']\n"
    wait_for_engine(tmp_path / "lock")


def test_no_engine_ever_ran(tmp_path: Path) -> None:
    wait_for_engine(tmp_path / "lock")

    assert not (tmp_path / "lock").exists()


def start(lock: Path) -> subprocess.Popen[str]:
    """Start an engine that would run for long, and return when it does."""
    process = subprocess.Popen(
        guarded_command(
            [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(60)"], lock
        ),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_an_engine_that_still_runs_is_ended(tmp_path: Path) -> None:
    with start(tmp_path / "lock") as process:
        wait_for_engine(tmp_path / "lock")

        assert process.wait(5) == -signal.SIGKILL


def test_an_engine_that_cannot_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_guard, "PATIENCE", 0.1)
    with start(tmp_path / "lock") as process:
        (tmp_path / "lock").write_text("nobody")
        with pytest.raises(TimeoutError):
            wait_for_engine(tmp_path / "lock")
        process.kill()


def test_an_engine_whose_starter_died_at_once_does_not_begin(tmp_path: Path) -> None:
    """The guard waits for the lock while its parent dies."""
    marker = tmp_path / "began"
    command = ["/bin/sh", "-c", f"echo > {marker}"]
    child = os.fork()
    if child == 0:
        argv = guarded_command(command, tmp_path / "lock")
        os.spawnv(os.P_NOWAIT, argv[0], argv)  # noqa: S606
        os._exit(0)
    os.waitpid(child, 0)
    end = time.monotonic() + 60
    while not (tmp_path / "lock").exists() and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.3)

    wait_for_engine(tmp_path / "lock")
    assert not marker.exists()
