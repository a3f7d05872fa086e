"""What the signals that end a program do while an environment is being changed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


def signals_as_interrupt() -> AbstractContextManager[None]:
    """Raise KeyboardInterrupt on SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block.

    A signal that is ignored already (`nohup`, a job in the background) stays ignored.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    return _handled(interrupt)


def signals_ignored() -> AbstractContextManager[None]:
    """Ignore SIGINT, SIGTERM, SIGHUP and SIGBREAK inside the block."""
    return _handled(signal.SIG_IGN)


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
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)
