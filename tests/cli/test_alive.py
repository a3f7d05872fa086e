"""What takes long shows every two seconds that it goes on: in a pipe, and at a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from ortgpu_fix.cli import alive, console
from ortgpu_fix.messages.catalog import load_texts

EN = load_texts("en")
PROGRAM = (sys.executable, "-m", "ortgpu_fix")
SLOW = 5
MOST = 2.0
"""Seconds of silence."""
LATE = 2.0
"""Seconds that a busy machine may add."""


class Output:
    """What comes of one end of a pipe or a terminal, and when."""

    def __init__(self, descriptor: int) -> None:
        self.parts: list[tuple[float, bytes]] = []
        self._thread = threading.Thread(target=self._read, args=(descriptor,))
        self._thread.start()

    def _read(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):  # a terminal whose other end is closed
            while part := os.read(descriptor, 4096):
                self.parts.append((time.monotonic(), part))
        os.close(descriptor)

    def longest_silence(self, began: float) -> float:
        self._thread.join()
        times = [began, *(when for when, _ in self.parts)]
        return max(after - before for before, after in pairwise(times))

    @property
    def text(self) -> str:
        return b"".join(part for _, part in self.parts).decode()


@pytest.fixture
def slow_python(tmp_path: Path) -> Path:
    """Return a Python that takes its time to start, as one on a network drive."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nsleep {SLOW}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_a_slow_child_is_no_silence(slow_python: Path, tmp_path: Path) -> None:
    import pty

    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    words = [*PROGRAM, "--python", str(slow_python)]
    began = time.monotonic()
    started = []
    for ours, theirs in (os.pipe(), pty.openpty()):
        heard = Output(ours)
        child = subprocess.Popen(words, env=environ, cwd=tmp_path, stdout=theirs, stderr=theirs)
        os.close(theirs)
        started.append((heard, child))
    codes = [child.wait() for _, child in started]
    (pipe, _), (terminal, _) = started

    assert codes[0] == codes[1]
    for heard in (pipe, terminal):
        assert heard.longest_silence(began) < MOST + LATE
    assert re.match(r"(Still working: \d s\n){1,3}\w", pipe.text)
    # One line, which goes before the answer comes.
    assert re.match(r"(\rStill working: \d s){1,3}\r +\r[\x1b\w]", terminal.text)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [100.0]
    monkeypatch.setattr(alive.time, "monotonic", lambda: seconds[0])  # type: ignore[attr-defined]
    monkeypatch.setattr(alive, "_talk", alive._Talk())
    monkeypatch.setattr(alive, "SILENCE", 1.5)
    return seconds


def test_what_is_said_by_itself_is_a_sign_too(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    def signs(*seconds: float) -> list[str]:
        for second in seconds:
            now[0] = 100 + second
            alive._sign(lambda: EN, console.print_notice)
        return capsys.readouterr().err.splitlines()

    alive.note()
    assert signs(1, 2, 3, 4) == ["Still working: 2 s", "Still working: 4 s"]
    console.print_notice("a step")
    assert signs(5, 6) == ["a step", "Still working: 2 s"]
    with alive.paused():
        assert signs(7, 30) == []
    assert signs(31, 32) == ["Still working: 2 s"]


def test_a_command_for_programs_and_one_that_runs_another_say_nothing(
    slow_python: Path, tmp_path: Path
) -> None:
    words = [*PROGRAM, "--python", str(slow_python), "--json"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)

    assert done.stderr == ""
