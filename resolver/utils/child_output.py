"""What a child writes: to a pipe that `subprocess` makes, or to one that is heard as it comes."""

from __future__ import annotations

import codecs
import contextlib
import os
import subprocess  # noqa: TID251 - for a constant
import sys
import threading
from collections.abc import Callable, Iterator

_SECONDS = 5.0
_LONGEST = 1 << 16
"""Of a line without an end."""


class Pipe:
    """A pipe, which `subprocess` makes and reads."""

    theirs = subprocess.PIPE
    """What the child is given."""

    def began(self) -> None:
        """Take note that the child has its end."""

    def ended(self) -> str:
        """Return what was heard."""
        return ""


class Heard(Pipe):
    """A pipe, or a pseudo-terminal; what comes is handed to `hear` in a thread, and kept.

    `read` yields it from our end, which the thread closes.
    """

    def __init__(
        self,
        hear: Callable[[str], None],
        ours: int,
        theirs: int,
        read: Callable[[int], Iterator[str]],
    ) -> None:
        self._heard: list[str] = []
        self._hear = hear
        self._read = read
        self._ours, self.theirs = ours, theirs
        self._reader = threading.Thread(target=self._listen, daemon=True)

    def began(self) -> None:
        """Read from now on."""
        os.close(self.theirs)
        self._reader.start()

    def ended(self) -> str:
        """Return what was heard. What the child left behind may still hold its end."""
        if self._reader.ident is not None:
            self._reader.join(_SECONDS)
        else:  # no child was started
            os.close(self.theirs)
            os.close(self._ours)
        return "".join(self._heard)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # a terminal of Linux whose other end is closed
            for text in self._read(self._ours):
                self._heard.append(text)
                self._hear(text)


def heard_lines(hear: Callable[[str], None] | None) -> Pipe:
    """Return a pipe that calls `hear` with each line; one of `subprocess` without it.

    The caller gives `theirs` to the child, and calls `began` and `ended`.
    """
    return Pipe() if hear is None else Heard(hear, *os.pipe(), read=_lines)


def heard_terminal(drawn: Callable[[str], None] | None) -> Pipe:
    """Return a terminal that calls `drawn`, for a child that draws its progress only there.

    A pipe without it, or where no terminal is to be had, as on Windows.
    """
    if drawn is not None and sys.platform != "win32":
        with contextlib.suppress(OSError):
            return Heard(drawn, *os.openpty(), read=_pieces)
    return Pipe()


@contextlib.contextmanager
def passed_on(hear: Callable[[str], None] | None) -> Iterator[int | None]:
    """Give a pipe whose bytes come out of our own standard error at once; None without `hear`.

    `hear` gets its lines in a thread, all of them by the end, unless what the program left behind
    holds the pipe.
    """
    if hear is None:
        yield None
        return
    ours, theirs = os.pipe()
    reader = threading.Thread(target=_pass_on, args=(ours, hear), daemon=True)
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join(_SECONDS)


def _pass_on(descriptor: int, hear: Callable[[str], None]) -> None:
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    text = ""
    with open(descriptor, "rb", buffering=0) as file:
        while data := file.read(1 << 14):
            left = data
            with contextlib.suppress(OSError):  # nobody reads ours any more
                while left:
                    left = left[os.write(2, left) :]
            text += decode(data)
            end = text.rfind("\n") + 1 or len(text) * (len(text) > _LONGEST)
            if end:
                hear(text[:end])
                text = text[end:]
    hear(text)


def _lines(descriptor: int) -> Iterator[str]:
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        yield from file


def _pieces(descriptor: int) -> Iterator[str]:
    with open(descriptor, "rb", buffering=0) as file:
        while data := file.read(1 << 14):
            yield data.decode("utf-8", errors="replace")
