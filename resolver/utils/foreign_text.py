"""Text from elsewhere: names, paths, logs, metadata, an index's words, uv's output.

All of it goes through here before it reaches a terminal, a document, a facts file or a lock: no
control character moves the cursor, sets the clipboard or hides a line, and no address has secrets.
`cli.console`, which prints everything, and whoever writes such a file send it through here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

_SEQUENCES = re.compile(
    r"""(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"""
    r"""|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"""
    r"""|\x1b[ -/]*[0-~]?"""
)
"""Escape sequences of ECMA-48: strings (OSC, DCS, …) to their end, CSI, and the short ones.

Source: https://ecma-international.org/publications-and-standards/standards/ecma-48/
"""
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
"""C0 but tab and line break, C1, and what turns the direction of text."""
_AFTER_SCHEME = r"(?:(?<=://)|(?<=http:/)|(?<=https:/))(?!/)"
"""A path that was made of an address has one of its slashes."""
_LOGIN = re.compile(_AFTER_SCHEME + r"(?:(?:[^/@\s\"']|[\"'](?![\s,:;)\]}]))*@)+")
"""A quote may be of the password, where it does not end an address."""
_LOGIN_WITH_SLASH = re.compile(
    _AFTER_SCHEME + r"[^/@\s\"':]+:(?![0-9]*(?:/|$))[^\s\"'@]*@(?:[^\s\"'@/]*@)*"
)
"""`user:pass/word@`: a browser would write `%2F`, and people do not."""
_QUERY = re.compile(r"((?:://|https?:/)[^\s\"'\\?#]*)(?:\?[^\s\"'\\#]*)?")
_FRAGMENT = re.compile(
    r"((?:://|https?:/)[^\s\"'\\#]*)(?:#"
    r"(?!(?:(?:egg|sha256|subdirectory)=[\w.,/\[\]-]*|[A-Za-z]+(?:[-_][A-Za-z]+)*)"
    r"(?![^\s\"'\\),.;]))[^\s\"'\\]*)?"
)
"""What comes after `#` stays where pip reads it, and where it is the name of a paragraph.

Each matches an address without one, too, so that no text is read from each of its `://` to its end.
"""
_WORD = re.compile(r"[^\s\"']+")
_NO_FILE_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f:]")
LONGEST = 255
"""Bytes of a file name on the filesystems of Linux; characters on those of Windows."""


def without_controls(text: str) -> str:
    """Return `text` without escape sequences and control characters but tab and line break."""
    if text.isprintable():
        return text
    return _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def without_secrets(text: str) -> str:
    """Return `text` with its addresses without user name, password, query and fragment."""
    if ":/" not in text:
        return text
    text = _WORD.sub(_without_login, _LOGIN.sub("", text))
    return _FRAGMENT.sub(r"\1", _QUERY.sub(r"\1", text))


def _without_login(word: re.Match[str]) -> str:
    """Return a word without logins that have a `/`; what is behind its last `@` has none."""
    before, at, behind = word[0].rpartition("@")
    return _LOGIN_WITH_SLASH.sub("", before + at) + behind


def clean_text(text: str) -> str:
    """Return `text` without control characters and secrets."""
    return without_secrets(without_controls(text))


def clean(value: object) -> object:
    """Return `value`, and all text in it, without control characters and secrets."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {
            clean(key): clean(item) for key, item in cast("Mapping[object, object]", value).items()
        }
    if isinstance(value, list | tuple):
        return [clean(item) for item in cast("list[object]", value)]
    return value


def plain_name(text: str) -> str:
    """Return the file name at the end of the path `text`; empty where that is none.

    What it returns stays in the folder that it is joined to, on every system.
    """
    name = re.split(r"[/\\]", text)[-1]
    if (
        name in {".", ".."}
        or _NO_FILE_NAME.search(name)
        or len(name.encode(errors="replace")) > LONGEST
    ):
        return ""
    return name
