"""How much of several large things is in memory at the same time."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Room:
    """Lets threads in while what they hold together has room; the first always."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def for_bytes(self, count: int) -> Iterator[None]:
        """Wait until `count` more bytes have room, and hold them until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + count <= self._size)
            self._used += count
        try:
            yield
        finally:
            with self._changed:
                self._used -= count
                self._changed.notify_all()
