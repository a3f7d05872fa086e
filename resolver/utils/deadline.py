"""A limit on the time of a call that has none of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def within(seconds: float, call: Callable[[], _Result]) -> _Result:
    """Return what `call` returns, or raise what it raises, within `seconds`.

    It runs in a thread of its own, which is left alone where it takes longer, and ends with the
    program. Raises TimeoutError then.
    """
    results: list[_Result] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise TimeoutError
    return results[0]
