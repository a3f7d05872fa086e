"""The standard streams, whatever they are connected to."""

from __future__ import annotations

import codecs
import io
import os
import sys

_HANDLER = "ortgpu-fix"
_SIGNS = {
    "✗": "x",
    "✓": "+",
    "·": "-",
    "→": "->",
    "×": "x",
    "…": "...",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
}
"""What stands for a character that the encoding of a stream lacks."""


def open_streams() -> None:
    """Make the streams take whatever is printed; one that was closed (`>&-`) is the null device.

    Of what the encoding of a file or a pipe lacks (Windows: cp1252, cp936) signs are shown by
    others and the rest by its number in hexadecimal: nothing is lost.
    """
    codecs.register_error(_HANDLER, _shown)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def shows_chinese() -> bool:
    """Return whether the encodings of both stdout and stderr have Chinese characters."""
    try:
        for stream in (sys.stdout, sys.stderr):
            "中文".encode(getattr(stream, "encoding", None) or "utf-8")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _shown(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    return _SIGNS.get(character) or ascii(character)[1:-1], error.start + 1
