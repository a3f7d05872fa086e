"""What a path is now, to be compared with what the journal recorded of it."""

# Paths are strings: there are tens of thousands of them.

from __future__ import annotations

import os
import stat

from .journal import Fingerprint

_SLACK = 2_000_000_000
"""Nanoseconds by which a copy to another filesystem (FAT: two seconds) may change the time."""


def fingerprint(path: str) -> Fingerprint | None:
    """Return kind, size and time of `path` itself (no link is followed); None where nothing is."""
    try:
        about = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    for kind, is_kind in (("file", stat.S_ISREG), ("link", stat.S_ISLNK), ("folder", stat.S_ISDIR)):
        if is_kind(about.st_mode):
            return kind, 0 if kind == "folder" else about.st_size, about.st_mtime_ns
    return "special", 0, about.st_mtime_ns


def is_same(found: Fingerprint | None, recorded: Fingerprint) -> bool:
    """Return whether a file that was moved, or copied with its times, is the `recorded` one."""
    return found is not None and found[:2] == recorded[:2] and abs(found[2] - recorded[2]) <= _SLACK
