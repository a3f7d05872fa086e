"""What the signals that end a program do while an environment is being changed.

One handler for the whole of a command: what it does is decided by a value, and not by exchanging
handlers, so that there is no instant at which a signal meets the wrong one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


class _Held:
    """How many blocks hold signals back, whether one may interrupt now, and whether one came."""

    depth = 0
    interruptible = False
    pending = False


def signals_as_interrupt() -> AbstractContextManager[None]:
    """Raise KeyboardInterrupt on SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block.

    A signal that is ignored already (`nohup`, a job in the background) stays ignored.
    """
    return _handled(_handle)


@contextmanager
def signals_held() -> Iterator[None]:
    """Note signals inside the block, and raise KeyboardInterrupt in `interruptible` alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handled(_handle):
        if not _Held.depth:
            _Held.pending = False
        _Held.depth += 1
        try:
            yield
        finally:
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


def signals_ignored() -> AbstractContextManager[None]:
    """Ignore SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block."""
    return _handled(signal.SIG_IGN)


def _handle(_number: int, _frame: FrameType | None) -> None:
    if _Held.depth and not _Held.interruptible:
        _Held.pending = True
        return
    _Held.interruptible = False
    raise KeyboardInterrupt


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only it is interrupted
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
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
