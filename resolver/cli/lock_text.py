"""The text of a lock, as whoever checks or compares it reads it."""

from __future__ import annotations

from pathlib import Path

from ..errors import Error, cause
from ..messages.sections import size

MOST_BYTES = 20_000_000
"""What is larger is no lock: that of a thousand distributions with twenty wheels each has six."""


def read_lock_text(file: str) -> str:
    """Return the text of a lock, which may come through a pipe. Raises Error `lock-unreadable`."""
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            large = cause("file-too-large", size=size(MOST_BYTES))
            raise Error("lock-unreadable", file=file, cause=large)
        return content.decode().replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise Error("lock-unreadable", file=file, cause=error.strerror or error) from error
    except ValueError as error:
        raise Error("lock-unreadable", file=file, cause=cause("text-not-utf8")) from error
