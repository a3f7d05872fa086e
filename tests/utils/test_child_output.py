"""A child that draws on a terminal is heard while it draws."""

from __future__ import annotations

import os
import sys
import time

import pytest

from ortgpu_fix.utils.process import run

CODE = "import os,sys,time; print(os.isatty(2), flush=True); sys.stderr.write('one ä'); "
CODE += "sys.stderr.flush(); time.sleep(float(sys.argv[1])); sys.stderr.write('two'); sys.exit(3)"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python has no terminal to give")
def test_it_is_heard_at_once_and_kept() -> None:
    heard: list[tuple[float, str]] = []
    begun = time.monotonic()

    done = run(
        [sys.executable, "-c", CODE, "0.5"],
        timeout=60,
        env={},
        drawn=lambda text: heard.append((time.monotonic() - begun, text)),
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, "True\n", "one ätwo")
    assert "".join(text for _, text in heard) == "one ätwo"
    assert heard[-1][0] - heard[0][0] > 0.3


def test_without_one_it_is_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> tuple[int, int]:
        raise OSError("out of pty devices")

    if hasattr(os, "openpty"):
        monkeypatch.setattr(os, "openpty", none)

    for heard in (None, pytest.fail):
        done = run([sys.executable, "-c", CODE, "0"], timeout=60, env={}, drawn=heard)
        assert (done.returncode, done.stdout, done.stderr) == (3, "False\n", "one ätwo")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' Python has no terminal to give")
def test_one_that_does_not_end_is_ended() -> None:
    done = run([sys.executable, "-c", CODE, "3600"], timeout=0.5, env={}, drawn=lambda _: None)

    assert (done.timed_out, done.stderr) == (True, "one ä")
