"""What the signals that end a program do while an environment is being changed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Let the signals that end a program raise KeyboardInterrupt: there is something to undo.

    One that is ignored already (`nohup`, a job in the background) stays ignored.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Let nothing but SIGKILL end what is done now; it takes well under a second."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers,
) -> Iterator[None]:
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
