"""How children end, and what is kept of what they said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ortgpu_fix.probe.background import BackgroundCall
from ortgpu_fix.utils import process as run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_end_of_a_child() -> None:
    finished = run.run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), timeout=120
    )

    assert (finished.returncode, finished.stdout, finished.stderr) == (3, "out\n", "err\n")
    assert not finished.timed_out


def test_text_goes_in_and_the_environment_is_chosen() -> None:
    code = "import os, sys; print(sys.stdin.read(), os.environ.get('HOME'), os.environ['A'])"
    finished = run.run(python(code), timeout=120, env={"A": "1"}, text_in="in")

    assert finished.stdout == "in None 1\n"


def test_a_child_that_does_not_listen() -> None:
    assert run.run(python("pass"), timeout=120, text_in="x" * 1_000_000).returncode == 0


def test_a_crash() -> None:
    finished = run.run(python("import os; os.kill(os.getpid(), 11)"), timeout=120)

    assert finished.returncode == -signal.SIGSEGV


def test_what_was_said_before_the_time_limit_is_kept() -> None:
    finished = run.run(["/bin/sh", "-c", "echo said; exec sleep 60"], timeout=1)

    assert finished.timed_out
    assert finished.stdout == "said\n"


def test_what_it_started_ends_with_it() -> None:
    start = time.monotonic()
    finished = run.run(["/bin/sh", "-c", "sleep 60 & echo said; sleep 60"], timeout=1)

    assert finished.stdout == "said\n"
    assert time.monotonic() - start < 30


def test_a_pipe_that_nobody_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a child that is stuck in the kernel: what it said is not lost with it."""
    monkeypatch.setattr(run, "GRACE_SECONDS", 0.2)
    code = "import subprocess, time; print('said', flush=True);"
    code += "subprocess.Popen(['sleep', '20'], start_new_session=True); time.sleep(60)"
    finished = run.run(python(code), timeout=2)

    assert finished.timed_out
    assert finished.stdout == "said\n"


def test_output_that_is_no_text() -> None:
    code = "import sys; sys.stdout.buffer.write(bytes([0xFF, 0x0A]))"

    assert run.run(python(code), timeout=120).stdout == "\ufffd\n"


def test_no_such_program() -> None:
    with pytest.raises(OSError, match="nowhere"):
        run.run(["/nowhere"], timeout=1)


def test_environments_for_children() -> None:
    caller = {"PATH": "/bin", "PYTHONPATH": "/x", "PIP_FIND_LINKS": "/y", "UV_INDEX": "z"}

    assert run.own_environment(caller) == {
        "PATH": "/bin",
        "PIP_FIND_LINKS": "/y",
        "UV_INDEX": "z",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    child = run.install_environment({**caller, "VIRTUAL_ENV": "/venv"})
    assert child["PATH"] == "/bin"
    assert not {"PYTHONPATH", "PIP_FIND_LINKS", "UV_INDEX", "VIRTUAL_ENV"} & set(child)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_no_child_outlives_us(tmp_path: Path) -> None:
    """Ctrl-C leaves threads behind that wait for an interpreter or a driver that hangs."""
    program = """
import sys, time
from pathlib import Path
from ortgpu_fix.probe.background import BackgroundCall
from ortgpu_fix.utils.process import run
BackgroundCall(lambda: run(["/bin/sh", "-c", "echo $$ > pid; exec sleep 60"], timeout=60))
while not (Path("pid").exists() and Path("pid").read_text()):
    time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    child = int((tmp_path / "pid").read_text())

    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")


def test_what_happens_beside_us_is_returned_or_raised() -> None:
    def broken() -> int:
        raise ZeroDivisionError

    assert BackgroundCall(lambda: 3).result() == 3
    with pytest.raises(ZeroDivisionError):
        BackgroundCall(broken).result()
