"""Signs of life: what a command that says nothing for a while says every two seconds.

What is printed goes through `console`, which takes note of it here.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from ..messages.catalog import Texts
from ..messages.sections import width
from ..utils.progress import beating

SILENCE = 1.5
"""Seconds after which something is said again: with a beat a second, two at most."""


class Drawn(Protocol):
    """What draws on the terminal, and shows by itself that it goes on."""

    def wait(self, line: str) -> None:
        """Draw `line` where nothing else is drawn."""

    def settle(self) -> None:
        """Take that line away."""


class _Talk:
    """What this process said, and when."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.last = self.step = time.monotonic()
        """When anything was said last, and when something that was no sign of life."""
        self.pauses = 0
        self.drawn: Drawn | None = None
        self.line = ""
        """The sign of life that stands on the terminal."""
        self.draw: Callable[[str], None] = lambda _: None
        """Draws in the place of the line that the cursor is in."""


_talk = _Talk()


def note(*, wipes: bool = True) -> None:
    """Take note that something is said now; `wipes`: what stands on the terminal goes first."""
    with _talk.lock:
        _talk.last = _talk.step = time.monotonic()
        if _talk.line:
            _talk.draw(" " * width(_talk.line))
            _talk.draw("")
            _talk.line = ""
        if wipes and _talk.drawn is not None:
            _talk.drawn.settle()


def is_late() -> bool:
    """Tell whether nothing was said for so long that something should be."""
    return time.monotonic() - _talk.last > SILENCE


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Say nothing while a person is waited for, or somebody else's program."""
    _talk.pauses += 1
    try:
        yield
    finally:
        _talk.pauses -= 1
        note()


@contextlib.contextmanager
def drawing(drawn: Drawn) -> Iterator[None]:
    """Let signs of life be drawn by what draws."""
    _talk.drawn = drawn
    try:
        yield
    finally:
        with _talk.lock:
            _talk.drawn = None


@contextlib.contextmanager
def signs_of_life(
    texts: Callable[[], Texts], say: Callable[[str], None], draw: Callable[[str], None]
) -> Iterator[None]:
    """Show that a command still works where it says nothing.

    `draw` draws in the place of the line that the cursor is in, at a terminal; `say` prints a line.
    """
    note()
    _talk.draw = draw
    with contextlib.ExitStack() as ends:
        ends.callback(note)
        ends.enter_context(beating(lambda: _sign(texts, say)))
        yield


def _sign(texts: Callable[[], Texts], say: Callable[[str], None]) -> None:
    with _talk.lock:
        if _talk.pauses or not is_late():
            return
        step = _talk.step
        line = texts().progress("working", seconds=int(time.monotonic() - step))
        if _talk.drawn is not None:
            _talk.drawn.wait(line)
        elif sys.stderr.isatty():
            _talk.draw(line)
            _talk.line = line
        else:
            say(line)
        _talk.last, _talk.step = time.monotonic(), step
