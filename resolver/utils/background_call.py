"""A call in a thread of its own, which can be waited for with a limit."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_STEP = 0.1
"""Seconds after which a wait looks whether it is to end."""


class BackgroundCall(Generic[T]):
    """A call that runs in a daemon thread.

    A pool would be waited for when the user interrupts, and the driver may hang. `close` gets a
    result that comes when nobody waits for it any more.
    """

    def __init__(self, call: Callable[[], T], close: Callable[[T], None] | None = None) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, args=(call,), daemon=True)
        self._answers: list[T] = []
        self._is_left = False
        self._errors: list[BaseException] = []
        self._thread.start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            answer = call()
            with self._lock:
                self._answers.append(answer)
                if self._is_left and self._close:
                    self._close(answer)
        except BaseException as error:  # noqa: BLE001 - `result` raises it again
            self._errors.append(error)

    def result(self, seconds: float = math.inf, stop: threading.Event | None = None) -> T:
        """Wait for the call, and return or raise its result.

        Raises TimeoutError where it takes longer than `seconds`, or `stop` is set before; it is
        left alone then, and ends with the program.
        """
        end = time.monotonic() + seconds
        stop = stop or threading.Event()
        while self._thread.is_alive() and time.monotonic() < end and not stop.is_set():
            self._thread.join(_STEP)
        for error in self._errors:
            raise error
        with self._lock:
            self._is_left = not self._answers
        if self._is_left:
            raise TimeoutError
        return self._answers[0]
