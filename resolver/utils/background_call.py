"""A call in a thread of its own, which can be waited for with a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call that runs in a daemon thread.

    A pool would be waited for when the user interrupts, and the driver may hang.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._thread = threading.Thread(target=self._work, args=(call,), daemon=True)
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread.start()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._answers.append(call())
        except BaseException as error:  # noqa: BLE001 - `result` raises it again
            self._errors.append(error)

    def result(self, seconds: float | None = None) -> T:
        """Wait for the call, and return or raise its result.

        Raises TimeoutError where it takes longer than `seconds`; it is left alone then, and ends
        with the program.
        """
        self._thread.join(seconds)
        for error in self._errors:
            raise error
        if not self._answers:
            raise TimeoutError
        return self._answers[0]
