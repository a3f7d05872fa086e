"""No instant at which a signal meets the wrong handler, and none that interrupts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ortgpu_fix.utils import process
from ortgpu_fix.utils.signals import (
    interruptible,
    signals_as_interrupt,
    signals_deferred,
    signals_held,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")


def come(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def command(heard: None) -> Iterator[None]:
    """What the command line does round every command."""
    del heard
    with signals_as_interrupt():
        yield


def test_the_first_interrupts_and_no_other() -> None:
    with pytest.raises(KeyboardInterrupt):
        come()
    come(signal.SIGHUP)
    come(signal.SIGINT)


def test_a_change_is_interrupted_once_and_where_it_may() -> None:
    heard = []
    with signals_held():
        come()
        try:
            with interruptible():
                heard.append("not reached")
        except KeyboardInterrupt:
            heard.append("interrupted")
            come(signal.SIGHUP)
        come(signal.SIGINT)

    assert heard == ["interrupted"]


def test_after_a_change_nothing_interrupts_what_is_said_of_it() -> None:
    with signals_held(to_the_end=True):
        come()
    come()


def test_after_a_recovery_the_command_can_be_interrupted() -> None:
    with signals_held():
        come()
    with pytest.raises(KeyboardInterrupt):
        come()


def test_what_is_deferred_comes_at_the_end() -> None:
    reached = []

    def deferred() -> None:
        with signals_deferred():
            come()
            reached.append(1)

    with pytest.raises(KeyboardInterrupt):
        deferred()
    assert reached == [1]

    with signals_held():
        with signals_deferred():
            come()
        reached.append(2)
    assert reached == [1, 2]


def test_a_child_that_was_just_started_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes before anybody knows the child."""
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen[str]:
        child = popen(*arguments, **options)  # type: ignore[call-overload]
        started.append(child)
        come()
        return child  # type: ignore[no-any-return]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)  # it does not look at its lifeline
    with pytest.raises(KeyboardInterrupt):
        process.run(["/bin/sleep", "60"], timeout=60, env={}, lifeline=True)

    assert started[0].wait(20) == -signal.SIGKILL
    for pipe in (started[0].stdout, started[0].stderr):
        assert pipe is not None
        pipe.close()
