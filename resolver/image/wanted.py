"""Which files of an image are read, and how much of each: of all others the size is enough."""

from __future__ import annotations

import re

_METADATA = 256 * 1024
_READ = (
    (re.compile(r"\.(dist|egg)-info/(METADATA|PKG-INFO)$|\.egg-info$"), _METADATA),
    (re.compile(r"/(onnxruntime|ort[-_]|nvidia)[^/]*\.dist-info/RECORD$"), 4_000_000),
    (re.compile(r"/onnxruntime/capi/build_and_package_info\.py$"), _METADATA),
    (re.compile(r"(^|/)pyvenv\.cfg$"), _METADATA),
    (re.compile(r"^(etc|usr/lib)/os-release$|^etc/ld\.so\.conf(\.d/[^/]+)?$"), _METADATA),
    (re.compile(r"/cuda[^/]*/version\.(json|txt)$"), _METADATA),
    (re.compile(r"(^|/)libc\.so\.6$|/libc-2\.\d+\.so$"), 4_000_000),
    (re.compile(r"^lib/apk/db/installed$"), 4_000_000),
)
"""Paths from the root, and the most bytes that are read there."""


def most_bytes(path: str) -> int:
    """Return how many bytes of the file at `path` (without a slash in front) are read: mostly 0."""
    return next((most for pattern, most in _READ if pattern.search(path)), 0)
