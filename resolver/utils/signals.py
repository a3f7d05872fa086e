"""What the signals that end a program do while an environment is being changed.

One handler for the whole of a command: what it does is decided by a value, and not by exchanging
handlers, so that there is no instant at which a signal meets the wrong one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


class _Held:
    """How many blocks hold signals back, and what of them has happened."""

    depth = 0
    interruptible = False
    """One may interrupt now."""
    pending = False
    """One came while none could interrupt."""
    done = False
    """None interrupts any more: one has, or the command has changed what it was to change."""


@contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block, once.

    A signal that is ignored already (`nohup`, a job in the background) stays ignored.
    """
    _Held.done = False
    with handled(_handle):
        yield


@contextmanager
def signals_held(*, to_the_end: bool = False) -> Iterator[None]:
    """Note signals inside the block, and raise KeyboardInterrupt in `interruptible` alone.

    With `to_the_end` none interrupts the rest of the command either: what it says of a change is
    said, and its exit code is that of the change.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with handled(_handle):
        if not _Held.depth:
            _Held.pending = False
        _Held.depth += 1
        try:
            yield
        finally:
            _Held.done = _Held.done or to_the_end
            _Held.depth -= 1


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for a signal inside the block, or one before it; once at most.

    Whatever comes after it is noted only, so that nothing interrupts the answer to the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Held.interruptible = True
    try:
        if _Held.pending:
            raise KeyboardInterrupt
        yield
    finally:
        _Held.interruptible = False


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Let no signal interrupt the block; one that came does so at its end, where it may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _Held.interruptible = _Held.interruptible, False
    _Held.depth += 1
    try:
        yield
    finally:
        _Held.depth -= 1
        _Held.interruptible = before
    if _Held.pending and (before or not (_Held.depth or _Held.done)):
        _Held.pending = _Held.interruptible = False
        _Held.done = True
        raise KeyboardInterrupt


def signals_ignored() -> AbstractContextManager[None]:
    """Ignore SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block."""
    return handled(signal.SIG_IGN)


def _handle(_number: int, _frame: FrameType | None) -> None:
    if not _Held.interruptible and (_Held.depth or _Held.done):
        _Held.pending = True
        return
    _Held.interruptible = False
    _Held.done = True
    raise KeyboardInterrupt


@contextmanager
def handled(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers, more: Sequence[str] = ()
) -> Iterator[None]:
    """Let `handler` answer, inside the block, SIGINT, its like and `more` that are not ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only it is interrupted
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", *more)
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    former = {
        number: signal.signal(number, handler)
        for number in numbers
        if signal.getsignal(number) not in {signal.SIG_IGN, handler}
    }
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)
