"""The user's package index, as the readers of wheels need it."""

from __future__ import annotations

import threading

from ..errors import Error
from ..index.client import Index
from ..plan.wheels import PYPI
from .wheels import IndexWheel, wheel_of

_NOT_FOUND = 404


class IndexSource:
    """Pages and parts of wheels of the configured index; counts the bytes received."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._lock = threading.Lock()
        self.bytes_received = 0

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page, yanked ones left out, the oldest first."""
        try:
            _, files = self._index.project(index_url or PYPI, distribution)
        except Error as error:
            if error.code == "index-refused" and error.values.get("status") == _NOT_FOUND:
                return []  # an index of a company, or a feed, need not have everything
            raise
        found = (wheel_of(row.name, row.url, row.sha256 or "") for row in files if not row.yanked)
        return sorted(
            filter(None, found), key=lambda wheel: (wheel.version, wheel.platform, wheel.file)
        )

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return part of a file, and the size of the whole."""
        content, total = self._index.read_part(url, byte_range)
        with self._lock:
            self.bytes_received += len(content)
        return content, total
