"""Remove homes, names of users and hosts, and tokens from text that may be shared."""

from __future__ import annotations

import json
import re

from ..utils.foreign_text import without_controls, without_secrets

_HOMES = re.compile(
    r"""(?<![\w.~-])(?:(?:/var|/export|/mnt|//[\w.-]+)?/home/[^/\s:;,"'<>|]+"""
    r"""|(?:/mnt/[a-z])?/Users/[^/\s:;,"'<>|]+"""
    r"""|\\{2,4}[\w.$-]+\\{1,2}(?:home|Users)\\{1,2}[^\\/:;,"'<>|]+"""
    r"""|[A-Za-z]:\\{1,2}Users\\{1,2}[^\\/:;,"'<>|]+"""
    r"""|[A-Za-z]:/Users/[^/:;,"'<>|]+)""",
)
"""Homes of Linux (also of Silverblue, NFS servers and automounters), macOS, Windows and WSL."""
_BUILDER = re.compile(r"\s*\([\w.+-]+@[\w.-]*\)")
_SERIAL = re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}\b")
_NOBODY = {"admin", "app", "conda", "cuda", "lib", "nvidia", "opt", "python", "root", "user"}
"""Names of accounts that are names of folders too."""


def redact(text: str, home: str | None = None, user: str | None = None) -> str:
    r"""Return `text` with `home`, and any other user's home, as `~`, and without secrets.

    A folder with the name of `user` (`/scratch/alice/venv`) becomes `…`. `home` is replaced where
    it is a path or its beginning (`/root/x`, not `/rootfs`), as it is and as JSON writes it
    (`C:\\Users`). A home of `/`, as services have it, stays.
    """
    if home is not None and home.strip("/\\"):
        for form in dict.fromkeys((home, json.dumps(home)[1:-1])):
            whole = form.rstrip("/\\")
            if whole in text:  # an expression takes a hundred times as long to find nothing
                text = re.sub(rf"(?<![\w.~-]){re.escape(whole)}(?![\w.-])", "~", text)
    if "/home/" in text or "\\home\\" in text or "Users" in text:
        text = _HOMES.sub("~", text)
    if user and len(user) > 2 and user.lower() not in _NOBODY:  # noqa: PLR2004 - "me" is a word
        text = re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\:;,\"'\s]|$)", "…", text)
    text = without_secrets(without_controls(text))
    if "@" in text:
        text = _BUILDER.sub("", text)
    return _SERIAL.sub(r"\1-…", text) if "GPU-" in text or "MIG-" in text else text
