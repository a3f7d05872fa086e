"""Regular expressions that can be looked for in a large log.

Each has a piece of fixed text, its anchor: `str.find` looks for that, and the expression sees only
what stands around it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHORTEST = 6
"""The least fixed text that is quick to look for."""

_LITERAL = re.compile(r"\\([^A-Za-z0-9])")
_VARYING = re.compile(
    r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:[?*+]|\{[\d,]*\})?\??"
    r"|(?:\[[^\]]*\]|\\[A-Za-z]|\.)(?:[?*+]|\{[\d,]*\})?\??|.[?*{]|\{[^}]*\}|[.^$+?{}]"
)
_PRIVATE = 0xE000
"""Where Unicode has room: an escaped character stands there while its expression is taken apart."""


class Pattern(NamedTuple):
    """A regular expression, and fixed text without which it cannot match."""

    regex: re.Pattern[str]
    anchor: str


def pattern(source: str, key: str = "pattern") -> Pattern:
    """Make a pattern; its anchor is the longest text outside of groups, classes and quantifiers.

    Raises ValueError that begins with `key` where it is no expression, or has no fixed text.
    """
    expression = regex(source, key)
    plain = _LITERAL.sub(lambda found: chr(_PRIVATE + ord(found[1])), source)
    fixed = _VARYING.split(plain)
    anchor = "".join(
        chr(ord(char) - _PRIVATE) if ord(char) >= _PRIVATE else char for char in max(fixed, key=len)
    )
    if len(anchor) < SHORTEST or any("|" in text for text in fixed):
        raise ValueError(f"{key}: fixed text is needed, and alternatives only in a group")
    return Pattern(regex=expression, anchor=anchor)


def regex(source: str, key: str = "pattern") -> re.Pattern[str]:
    """Compile `source`. Raises ValueError that begins with `key`."""
    try:
        return re.compile(source)
    except re.error as error:
        raise ValueError(f"{key}: {error}") from error
