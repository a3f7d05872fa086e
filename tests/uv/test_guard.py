"""An engine that outlives whoever started it is found and ended."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ortgpu_fix.utils import process
from ortgpu_fix.utils.process import run
from ortgpu_fix.uv import guard as engine_guard
from ortgpu_fix.uv.guard import guarded_command, wait_for_engine

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has its own guard: tests/windows"
)


def test_the_guard_runs_the_engine(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:]); print(repr(sys.stdin.read())); sys.exit(3)"
    command = guarded_command([sys.executable, "-c", code, "a b", "-x"], tmp_path / "lock")
    done = run(command, timeout=60, env=os.environ, lifeline=True)

    assert (done.returncode, done.stdout) == (3, "['a b', '-x']\n''\n")
    wait_for_engine(tmp_path / "lock")


def test_an_engine_that_a_signal_ends_or_that_is_none(tmp_path: Path) -> None:
    command = guarded_command(["/bin/sh", "-c", "kill -SEGV $$"], tmp_path / "lock")
    done = run(command, timeout=60, env=os.environ, lifeline=True)
    assert (done.returncode, done.stderr) == (1, "ended by SIGSEGV\n")

    done = run(
        guarded_command(["/none"], tmp_path / "lock"), timeout=60, env=os.environ, lifeline=True
    )
    assert (done.returncode, done.stderr) == (127, "/none: No such file or directory\n")


def test_what_an_engine_leaves_behind_does_not_hold_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that a `.pth` of the environment starts; it also keeps the pipes of the engine."""
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)
    code = "import os, time; os.fork() or (os.setsid(), time.sleep(30)); print('done', flush=True)"
    began = time.monotonic()

    command = guarded_command([sys.executable, "-c", code], tmp_path / "lock")
    done = run(command, timeout=60, env=os.environ, lifeline=True)

    assert (done.returncode, done.stdout) == (0, "done\n")
    wait_for_engine(tmp_path / "lock")
    assert time.monotonic() - began < 20


def test_an_engine_is_gone_when_its_run_was_interrupted(tmp_path: Path) -> None:
    """Not only its guard: what writes into the environment has ended when the lock is free."""
    pid = tmp_path / "pid"
    code = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    command = guarded_command([sys.executable, "-c", code], tmp_path / "lock")

    done = run(command, timeout=3, env=os.environ, lifeline=True)

    assert done.timed_out
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_planted_lock_gets_nobody_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_guard, "PATIENCE", 0.1)
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as bystander:
        (tmp_path / "lock").write_text(str(bystander.pid))
        with (tmp_path / "lock").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(TimeoutError):
                wait_for_engine(tmp_path / "lock")
        assert bystander.poll() is None
        bystander.kill()
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    with pytest.raises(OSError, match="link"):
        wait_for_engine(tmp_path / "link")


def start(lock: Path) -> subprocess.Popen[str]:
    """Start an engine that would run for long, and return when it does."""
    process = subprocess.Popen(
        guarded_command(
            [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(60)"], lock
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_an_engine_ends_with_whoever_started_it(tmp_path: Path) -> None:
    with start(tmp_path / "lock") as process:
        assert process.stdin is not None
        process.stdin.write("what it has said before changes nothing")
        process.stdin.close()  # as a program that is killed does

        try:
            wait_for_engine(tmp_path / "lock")
            assert process.wait(5) == 1
        finally:
            process.kill()


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


def test_the_lock_names_the_guard_and_is_its_user_s_alone(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("12345678901234567890")
    code = "import os; print(os.getppid(), os.getpgrp() == os.getpid())"
    umask = os.umask(0)
    try:
        for name in ("old", "lock"):
            command = guarded_command([sys.executable, "-c", code], tmp_path / name)
            done = run(command, timeout=60, env=os.environ, lifeline=True)
            assert done.stdout.split() == [(tmp_path / name).read_text(), "True"]
    finally:
        os.umask(umask)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_an_engine_ends_with_its_guard(tmp_path: Path) -> None:
    """Killed, a guard can do nothing any more: the kernel does it."""
    code = "import time; print('began', flush=True); time.sleep(3); print('ended')"
    command = guarded_command([sys.executable, "-c", code], tmp_path / "lock")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        process.kill()
        assert process.stdout.read() == ""


def test_an_engine_is_waited_for_twenty_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs in the kernel takes longer than any other to end."""
    (tmp_path / "lock").touch()
    clock = iter([100.0, 110.0, 120.0, 120.1])
    slept: list[float] = []
    monkeypatch.setattr(engine_guard, "_holders", lambda _: iter(["7"] * 5))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", slept.append)

    with pytest.raises(TimeoutError, match=r"^process 7 does not end$"):
        wait_for_engine(tmp_path / "lock")

    assert slept == [0.02, 0.02]
