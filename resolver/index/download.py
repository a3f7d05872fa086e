"""Bring wheels into a folder, whole and checked.

What comes in is checked against the size and the hash that the caller knows, never against
what an index says of itself; what is complete, or begun, from an earlier run is used.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from ..errors import Error
from ..plan.wheels import Wheel
from ..utils.progress import Progress
from .client import Index, TransferStopped
from .folder import local_path
from .network_errors import TransferInterrupted
from .page import without_credentials

_CHUNK = 1 << 20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def download_all(
    index: Index,
    wheels: Sequence[Wheel],
    into: Path,
    progress: Progress,
    urls: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Bring `wheels` into the folder `into`, two at a time, and return their paths in order.

    `urls` may know the address of a file by its name, so that no project page is asked for it.
    Every file is then whole, has the hash of its wheel and is synced to the disk. Raises Error
    `files-not-here` (offline), `download-hash-mismatch`, `download-truncated`, `disk-full`,
    `disk-failed`, and those of `Index`; Ctrl-C ends it at the next piece that arrives.
    """
    one = _Downloader(index, into, progress, wheels, urls or {})
    try:
        into.mkdir(parents=True, exist_ok=True)
        absent = [
            wheel.file for wheel in wheels if index.sources.offline and not one.at_hand(wheel)
        ]
    except OSError as error:
        raise disk_error(error, into) from error
    if absent:
        folder = index.sources.find_links
        raise Error("files-not-here", files=", ".join(absent), folder=str(folder or "-"))
    index.stop.clear()
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(one.bring, wheel) for wheel in wheels]
        try:
            wait(jobs, return_when=FIRST_EXCEPTION)
        finally:
            index.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    for job in jobs:
        failure = None if job.cancelled() else job.exception()
        if failure is not None and not isinstance(failure, TransferStopped):
            raise failure
    index.stop.clear()  # none of them runs any more, and the index may be asked again
    return tuple(job.result() for job in jobs)


def disk_error(error: OSError, path: Path) -> Error:
    """Return the Error for a write that failed: `disk-full`, or `disk-failed` with the reason."""
    if error.errno in _FULL:
        return Error("disk-full", folder=str(path.parent))
    return Error("disk-failed", path=str(path), reason=error.strerror or type(error).__name__)


def file_digest(path: Path) -> str:
    """Return the sha256 of the file at `path`, in hexadecimal."""
    return _hash_of(path).hexdigest()


class _Downloader:
    """Brings one wheel after the other, from wherever it is nearest."""

    def __init__(
        self,
        index: Index,
        into: Path,
        progress: Progress,
        wheels: Sequence[Wheel],
        urls: Mapping[str, str],
    ) -> None:
        self._index = index
        self._into = into
        self._progress = progress
        self._urls = urls
        self._total = sum(wheel.size for wheel in wheels)
        self._moved: dict[str, int] = {}
        self._lock = Lock()

    def at_hand(self, wheel: Wheel) -> bool:
        """Tell whether `wheel` can be had without the network."""
        path = self._into / wheel.file
        if path.is_file() and file_digest(path) == wheel.sha256:
            return True
        return self._index.sources.near(wheel.file) is not None

    def bring(self, wheel: Wheel) -> Path:
        """Bring `wheel` and return its path; raises as `download_all` does."""
        path = self._into / wheel.file
        try:
            if path.is_file() and file_digest(path) == wheel.sha256:
                self._say(wheel, wheel.size)
                return path
            near = self._index.sources.near(wheel.file)
            if near is not None:
                return self._copy(wheel, near, path)
            url = self._urls.get(wheel.file) or self._index.find(wheel)
            if url.startswith("file:"):
                return self._copy(wheel, local_path(url), path)
            return self._fetch_checked(wheel, url, path)
        except OSError as error:
            raise disk_error(error, path) from error

    def _copy(self, wheel: Wheel, source: Path, path: Path) -> Path:
        """Copy `source`: not linked, so that nothing done to one of the two changes the other."""
        if not source.is_file():
            raise Error("file-not-on-index", file=wheel.file, url=str(source))
        part = path.with_name(f"{path.name}.part")
        shutil.copyfile(source, part)
        if file_digest(part) != wheel.sha256:
            part.unlink()
            raise Error("download-hash-mismatch", file=wheel.file, url=str(source))
        self._say(wheel, wheel.size)
        return _finish(part, path)

    def _fetch_checked(self, wheel: Wheel, url: str, path: Path) -> Path:
        part = path.with_name(f"{path.name}.part")

        def size() -> int:
            return part.stat().st_size if part.exists() else 0

        def fetch() -> str:
            return self._fetch(wheel, url, part, size())

        for _ in range(2):  # a begun file of another day may be the culprit
            if self._index.retry(fetch, size) == wheel.sha256:
                return _finish(part, path)
            part.unlink()
        raise Error("download-hash-mismatch", file=wheel.file, url=without_credentials(url))

    def _fetch(self, wheel: Wheel, url: str, part: Path, have: int) -> str:
        """Complete `part`, of which `have` bytes are there, and return its hash."""
        if wheel.size and have >= wheel.size:
            return file_digest(part)
        with self._index.read(url, have) as (start, chunks):
            if start < 0:  # the index has fewer bytes than we have
                return file_digest(part)
            known = _hash_of(part) if start else hashlib.sha256()
            have = start
            with part.open("ab" if start else "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                    known.update(chunk)
                    have += len(chunk)
                    self._say(wheel, have)
                    if wheel.size and have > wheel.size:
                        return "longer than it can be"
        if have < wheel.size:
            raise TransferInterrupted(
                Error("download-truncated", file=wheel.file, url=without_credentials(url))
            )
        return known.hexdigest()

    def _say(self, wheel: Wheel, moved: int) -> None:
        with self._lock:
            self._moved[wheel.file] = moved
            done = sum(self._moved.values())
        self._progress("download", done=done, total=self._total, file=wheel.file)


def _hash_of(path: Path) -> hashlib._Hash:
    known = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            known.update(chunk)
    return known


def _finish(part: Path, path: Path) -> Path:
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)
    return path
