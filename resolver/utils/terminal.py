"""The standard error of a child: a pipe, or a terminal for one that draws its progress only there.

Windows' Python has no terminal to give.
"""

from __future__ import annotations

import contextlib
import os
import subprocess  # noqa: TID251 - for a constant
import sys
import threading
from collections.abc import Callable

_SECONDS = 5.0


class Pipe:
    """A pipe, which `subprocess` makes."""

    theirs = subprocess.PIPE
    """What the child is given."""

    def began(self) -> None:
        """Take note that the child has its end."""

    def ended(self) -> str:
        """Return what was drawn."""
        return ""


class Terminal(Pipe):
    """A pseudo-terminal; what is drawn on it is handed on as it comes, and kept."""

    def __init__(self, hear: Callable[[str], None], ours: int, theirs: int) -> None:
        self._heard: list[str] = []
        self._hear = hear
        self._ours, self.theirs = ours, theirs
        self._reader = threading.Thread(target=self._read, daemon=True)

    def began(self) -> None:
        """Read from now on."""
        os.close(self.theirs)
        self._reader.start()

    def ended(self) -> str:
        """Return what was drawn. What the child left behind may still hold its end."""
        if self._reader.ident is not None:
            self._reader.join(_SECONDS)
        with contextlib.suppress(OSError):
            os.close(self._ours)
        return "".join(self._heard)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # Linux: the other end is closed
            while data := os.read(self._ours, 1 << 14):
                text = data.decode("utf-8", errors="replace")
                self._heard.append(text)
                self._hear(text)


def error_output(drawn: Callable[[str], None] | None) -> Pipe:
    """Return a terminal that calls `drawn`; a pipe without it, or where no terminal is to be had.

    The caller gives `theirs` to the child, and calls `began` and `ended`.
    """
    if drawn is not None and sys.platform != "win32":
        with contextlib.suppress(OSError):
            return Terminal(drawn, *os.openpty())
    return Pipe()
