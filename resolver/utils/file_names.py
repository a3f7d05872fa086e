"""File names that others choose: an index, an engine, a wheel, a lock."""

from __future__ import annotations

import re

_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f:]")
LONGEST = 255
"""Bytes of a file name on the filesystems of Linux; characters on those of Windows."""


def plain_name(text: str) -> str:
    """Return the file name at the end of the path `text`; empty where that is none.

    What it returns stays in the folder that it is joined to, on every system.
    """
    name = re.split(r"[/\\]", text)[-1]
    if (
        name in {".", ".."}
        or _FORBIDDEN.search(name)
        or len(name.encode(errors="replace")) > LONGEST
    ):
        return ""
    return name
