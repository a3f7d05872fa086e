"""How a long step reports its progress: it calls a `Progress`, which may draw it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

BEAT = 1.0
"""Seconds between two signs of life of a step that says nothing by itself."""


class Progress(Protocol):
    """Receives the progress of steps."""

    def __call__(self, code: str, /, *, done: int = 0, total: int = 0, **values: object) -> None:
        """Take the progress of the step `code`, a key of the table `progress` in `texts.toml`.

        `done` and `total` are bytes (0: not counted); `values` fill the placeholders of the text,
        and say of a download which `file` it is, and of its `size` how many bytes we `have`.
        May be called from several threads.
        """


def silent(_code: str, /, **_values: object) -> None:
    """Draw nothing."""


@contextlib.contextmanager
def beating(progress: Progress) -> Iterator[None]:
    """Report `working` once a second, with the seconds so far, as long as this lasts.

    Whoever reads what is said may be gone: that is found out elsewhere.
    """
    ended = threading.Event()

    def beat() -> None:
        seconds = 0
        with contextlib.suppress(OSError, ValueError):
            while not ended.wait(BEAT):
                seconds += 1
                progress("working", seconds=seconds)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
