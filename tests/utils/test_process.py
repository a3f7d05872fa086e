"""How children end, and what is kept of what they said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ortgpu_fix.utils import process as run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_end_of_a_child() -> None:
    finished = run.run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"),
        timeout=120,
        env=os.environ,
    )

    assert (finished.returncode, finished.stdout, finished.stderr) == (3, "out\n", "err\n")
    assert not finished.timed_out


def test_text_goes_in_and_the_environment_is_chosen() -> None:
    code = "import os, sys; print(sys.stdin.read(), os.environ.get('HOME'), os.environ['A'])"
    finished = run.run(python(code), timeout=120, env={"A": "1"}, text_in="in")

    assert finished.stdout == "in None 1\n"


def test_input_that_is_not_read_at_once_arrives_whole() -> None:
    """A machine that stands still for a moment: the child got a part, and waited for the rest."""
    code = "import sys, time; time.sleep(0.7); print(len(sys.stdin.read()))"

    finished = run.run(python(code), timeout=30, text_in="x" * 1_000_000, env=os.environ)

    assert (finished.timed_out, finished.stdout.strip()) == (False, "1000000")


def test_a_child_that_reads_nothing_and_hangs_is_ended_all_the_same() -> None:
    began = time.monotonic()

    finished = run.run(
        python("import time; time.sleep(60)"), timeout=1, text_in="x" * 1_000_000, env=os.environ
    )

    assert finished.timed_out
    assert time.monotonic() - began < 20


def test_a_pipe_that_nobody_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a child that is stuck in the kernel: what it said is not lost with it."""
    monkeypatch.setattr(run, "GRACE_SECONDS", 0.2)
    code = "import subprocess, time; print('said', flush=True);"
    code += "subprocess.Popen(['sleep', '20'], start_new_session=True); time.sleep(60)"
    finished = run.run(python(code), timeout=2, env=os.environ)

    assert finished.timed_out
    assert finished.stdout == "said\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_no_child_outlives_us(tmp_path: Path) -> None:
    """Ctrl-C leaves threads behind that wait for an interpreter or a driver that hangs."""
    program = """
import sys, time
from pathlib import Path
from typing import Any
from ortgpu_fix.utils.background_call import BackgroundCall
from ortgpu_fix.utils.process import run
BackgroundCall(lambda: run(["/bin/sh", "-c", "echo $$ > pid; exec sleep 60"], timeout=60, env={}))
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


def test_a_child_on_a_lifeline_learns_that_we_are_gone(tmp_path: Path) -> None:
    begun, over = tmp_path / "begun", tmp_path / "over"
    inner = (
        "import os, pathlib; "
        f"pathlib.Path({str(begun)!r}).touch(); os.read(0, 1); pathlib.Path({str(over)!r}).touch()"
    )
    ours = (
        "import sys; from ortgpu_fix.utils.process import run; "
        f"run([sys.executable, '-c', {inner!r}], timeout=60, env={{}}, lifeline=True)"
    )
    outer = subprocess.Popen(python(ours))
    ends = time.monotonic() + 30
    while not begun.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    time.sleep(0.3)
    assert not over.exists()

    outer.kill()
    outer.wait()

    while not over.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert over.exists()


@pytest.mark.usefixtures("heard")
def test_an_interrupt_ends_a_child_that_is_heard() -> None:
    def interrupt(line: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        numbers.append(int(line))

    numbers: list[int] = []
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        run.run(python(code), timeout=60, env=os.environ, hear=interrupt)

    with pytest.raises(ProcessLookupError):
        os.kill(numbers[0], 0)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_what_a_child_leaves_behind_ends_too() -> None:
    code = "sleep 600 >/dev/null 2>&1 & echo $!"
    left = int(run.run(["/bin/sh", "-c", code], timeout=60, env=os.environ).stdout)

    for _ in range(100):
        if (
            not Path(f"/proc/{left}").exists()
            or "\nState:\tZ" in Path(f"/proc/{left}/status").read_text()
        ):
            return
        time.sleep(0.05)
    pytest.fail("it is still there")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_signal_that_comes_while_the_program_is_started_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program can be ready before its starter knows that it runs."""
    real = subprocess.Popen

    def slow(*given: Any, **named: Any) -> Any:
        made = real(*given, **named)
        os.kill(os.getpid(), signal.SIGTERM)
        return made

    monkeypatch.setattr(subprocess, "Popen", slow)
    code = "import time; time.sleep(30)"

    assert run.run_in_foreground(python(code), env=os.environ) == -signal.SIGTERM


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("name", "by_terminal"), [("SIGQUIT", True), ("SIGINT", True), ("SIGTERM", False)]
)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_signal_is_the_programs_to_answer_and_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, by_terminal: bool, terminal: bool
) -> None:
    """Nobody is left behind without its starter; what a terminal sends it sends to both."""
    ready, sent, number = tmp_path / "ready", tmp_path / "sent", getattr(signal, name)
    code = f"""
import pathlib, signal, sys, time
signal.signal({int(number)}, lambda *_: sys.exit(9))
pathlib.Path({str(ready)!r}).touch()
while not pathlib.Path({str(sent)!r}).exists(): time.sleep(0.01)
time.sleep(0.2)
sys.exit(5)
"""

    def send() -> None:
        if ready.exists() and not sent.exists():
            os.kill(os.getpid(), number)
            sent.touch()

    monkeypatch.setattr(run, "_terminal_is_ours", lambda: terminal)
    before = signal.signal(number, signal.SIG_DFL)  # a test in the background may have it ignored
    try:
        status = run.run_in_foreground(python(code), env=os.environ, now_and_then=send)
    finally:
        signal.signal(number, before)

    assert status == (5 if terminal and by_terminal else 9)


@pytest.mark.skipif(sys.platform == "win32", reason="numbers of files")
def test_a_program_of_the_users_has_the_files_that_we_were_given_and_none_of_ours() -> None:
    """As `cat <(…)`, sockets of systemd, the job server of make."""
    ours, given = os.pipe()
    os.set_inheritable(given, True)  # noqa: FBT003 - it takes no name

    def wrote(file: int) -> bool:
        return (
            run.run_in_foreground(python(f"import os; os.write({file}, b'x')"), env=os.environ) == 0
        )

    assert (wrote(given), os.read(ours, 1)) == (True, b"x")
    assert not wrote(ours)
    os.close(ours)
    os.close(given)
