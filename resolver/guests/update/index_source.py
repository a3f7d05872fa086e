"""The user's package index, as the readers of wheels need it."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from ...errors import Error
from ...evidence.wheels import IndexWheel, wheels_on
from ...index.client import Index
from ...index.download import download
from ...index.page import without_credentials
from ...plan.wheels import PYPI, Pinned, Wheel

_NOT_FOUND = 404


class IndexSource:
    """Pages and parts of wheels of the configured index; counts the bytes received.

    A wheel whose server gives no parts of files is downloaded whole, once, into a folder.
    """

    def __init__(self, index: Index, folder: Path, *, complete: bool = False) -> None:
        """Read `index`; `complete`: it has every project, or it is down."""
        self._index = index
        self._folder = folder
        self._complete = complete
        self._lock = threading.Lock()
        self._listed: dict[str, IndexWheel] = {}
        self._whole: dict[str, threading.Lock] = {}
        self.received: Counter[str] = Counter()
        """The bytes of each wheel that came from the index, by file name."""
        self._absent: Error | None = None
        self.failure: BaseException | None = None
        """What ended the first request that failed; every other one ends with it."""

    @property
    def bytes_received(self) -> int:
        """Return the bytes of all wheels that came from the index."""
        with self._lock:
            return self.received.total()

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page, yanked ones left out, the oldest first."""
        try:
            _, files = self._index.project(index_url or PYPI, distribution)
        except Error as error:
            absent = error.code == "index-refused" and error.values.get("status") == _NOT_FOUND
            if absent and not self._complete:
                self._absent = error
                return []  # an index of a company, or a feed, need not have everything
            raise
        found = wheels_on(files)
        self._listed.update((wheel.url, wheel) for wheel in found)
        return found

    def address(self, index_url: str | None) -> str:
        """Return the address of an index as it may be shown; without one that of the user's."""
        return without_credentials(index_url or self._index.sources.index_url)

    def check_found(self) -> None:
        """Raise the Error `index-refused` of an index that has had no wheel: it is none."""
        if self._absent is not None and not self._listed:
            raise self._absent

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return part of a file, and the size of the whole."""
        try:
            if url in self._whole:
                return self._part_of_whole(url, byte_range)
            content, total = self._index.read_part(url, byte_range)
        except Error as error:
            if error.code == "index-without-ranges" and url in self._listed:
                return self._part_of_whole(url, byte_range)
            self._end(error)
            raise
        except BaseException as error:
            self._end(error)
            raise
        with self._lock:
            self.received[url.rpartition("/")[2]] += len(content)
        return content, total

    def _end(self, error: BaseException) -> None:
        with self._lock:
            self.failure = self.failure or error
        self._index.stop.set()

    def _part_of_whole(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return part of a file that is downloaded whole first."""
        with self._lock:
            downloading = self._whole.setdefault(url, threading.Lock())
        listed = self._listed[url]
        path = self._folder / listed.file
        with downloading:
            if listed.file not in self.received:
                wheel = Wheel(
                    name=listed.file.partition("-")[0],
                    version=str(listed.version),
                    index_url="",
                    file=listed.file,
                    size=0,
                    sha256=listed.sha256,
                )
                download(self._index, Pinned(wheel, url), self._folder)
                with self._lock:
                    self.received[listed.file] = path.stat().st_size
        first, _, last = byte_range.partition("-")
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = int(first) if first else max(0, size - int(last))
            file.seek(start)
            return file.read(int(last) + 1 - start if first else -1), size
