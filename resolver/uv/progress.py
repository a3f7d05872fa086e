"""How far uv's downloads are, as it draws that on a terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from packaging.utils import canonicalize_name

from ..plan.wheels import Wheel
from ..utils.progress import Progress

_SEQUENCE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LINE = re.compile(r"([\w.-]+) +-+ +([\d.]+) ([KMG]i)?B/[\d.]+ (?:[KMG]i)?B")
"""A distribution, a bar, the bytes that have come and those that will."""
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_LONGEST = 400
"""Characters of a line, its colours among them."""
_SECONDS = 0.3
"""So long uv takes to begin all downloads: before that the total would grow."""


class DrawnProgress:
    """Reports the downloads that uv draws; what it draws otherwise one day is not reported."""

    def __init__(self, wheels: Sequence[Wheel], progress: Progress) -> None:
        self._wheels = {wheel.name: wheel for wheel in wheels}
        self._progress = progress
        self._have: dict[str, int] = {}
        self._first: float | None = None
        self._rest = ""

    def hear(self, text: str) -> None:
        """Take what uv has drawn now."""
        self._rest = _SEQUENCE.sub("", self._rest + text)
        end = 0
        for line in _LINE.finditer(self._rest):
            end = line.end()
            wheel = self._wheels.get(canonicalize_name(line[1]))
            if wheel is not None:
                have = int(float(line[2]) * _UNITS[line[3] or ""])
                self._have[wheel.name] = min(have, wheel.size)
                self._report(wheel)
        self._rest = self._rest[end:][-_LONGEST:]

    def _report(self, wheel: Wheel) -> None:
        now = time.monotonic()
        self._first = self._first or now
        if now - self._first < _SECONDS:
            return
        self._progress(
            "download",
            done=sum(self._have.values()),
            total=sum(self._wheels[name].size for name in self._have),
            file=wheel.file,
            have=self._have[wheel.name],
            size=wheel.size,
        )
