"""How a long step reports its progress: it calls a `Progress`, which may draw it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

BEAT = 1.0
"""Seconds between two looks at whether a sign of life is due."""


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
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` once a second, as long as this lasts; not where there are no threads.

    Whoever reads what it says may be gone: that is found out elsewhere.
    """
    ended = threading.Event()

    def run() -> None:
        with contextlib.suppress(OSError, ValueError):
            while not ended.wait(BEAT):
                beat()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # in a browser
        yield
        return
    try:
        yield
    finally:
        ended.set()
        thread.join()
