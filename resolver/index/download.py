"""Download wheels into a folder, and check them.

A file is checked against the size and the hash that the caller knows, never against those of an
index. Files of an earlier run are used, and partial ones completed; what came for another
environment is taken from where it is kept (`kept_wheels`).
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from ..errors import Error
from ..plan.wheels import Wheel
from ..utils.files import disk_error, file_digest, hash_of
from ..utils.foreign_text import plain_name
from ..utils.progress import Progress, silent
from .client import Index, TransferStopped
from .folder import local_path
from .kept_wheels import keep, take_kept
from .network_errors import TransferInterrupted
from .page import without_credentials

_AT_ONCE = 4


def download_all(
    index: Index,
    wheels: Sequence[Wheel],
    into: Path,
    progress: Progress,
    urls: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Download `wheels` into the folder `into`, several at a time; return their paths in order.

    A file whose address `urls` has, by its name, needs no project page. Every file is whole and has
    the hash of its wheel. Raises Error that of `IndexConfig.absent` (offline),
    `download-hash-mismatch`, `download-truncated`, `disk-full`, `disk-failed`, `wheel-escapes` for
    a name that is not one in that folder, those of `Index`;
    Ctrl-C ends it at the next piece that arrives.
    """
    for wheel in wheels:  # what names a path is checked where it is joined to one
        if plain_name(wheel.file) != wheel.file or not wheel.file:
            raise Error("wheel-escapes", file=wheel.name, member=wheel.file)
    try:
        into.mkdir(parents=True, exist_ok=True)
        downloader = _Downloader(index, into, progress, wheels, urls or {})
        offline = wheels if index.sources.offline else ()
        absent = [wheel.file for wheel in offline if not downloader.is_likely_local(wheel)]
    except OSError as error:
        raise disk_error(error, into) from error
    if absent:
        raise index.sources.absent(", ".join(absent))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        jobs = [pool.submit(downloader.download, wheel) for wheel in wheels]
        try:
            wait(jobs, return_when=FIRST_EXCEPTION)
        finally:
            index.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    index.stop.clear()  # every job has ended, and the index is used again
    for job in jobs:  # one that failed comes before those that were cancelled
        failure = job.exception()
        if failure is not None and not isinstance(failure, TransferStopped):
            raise failure
    return tuple(job.result() for job in jobs)


def download_one(index: Index, wheel: Wheel, into: Path, url: str) -> Path:
    """Download `wheel` from `url` into the folder `into`; raises as `download_all` does."""
    if plain_name(wheel.file) != wheel.file or not wheel.file:
        raise Error("wheel-escapes", file=wheel.name, member=wheel.file)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, into) from error
    return _Downloader(index, into, silent, (wheel,), {wheel.file: url}).download(wheel)


class _Downloader:
    """Downloads one wheel after the other, or copies those that are on this machine."""

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
        self._moved: dict[str, int] = {}
        self._lock = Lock()
        self._coming = {wheel for wheel in wheels if not self.is_likely_local(wheel)}
        """What the network has to bring, and what of the rest turned out to be another file."""

    def is_likely_local(self, wheel: Wheel) -> bool:
        """Tell whether a file of its name and size is on this machine; its hash is not read."""
        sources = self._index.sources
        places = (self._into, sources.kept) if sources.kept is not None else (self._into,)
        sizes = [_size(place / wheel.file) for place in places]
        return sources.near(wheel.file) is not None or any(
            size == (wheel.size or size) for size in sizes if size is not None
        )

    def download(self, wheel: Wheel) -> Path:
        """Download `wheel` and return its path; raises as `download_all` does."""
        path = self._into / wheel.file
        sources = self._index.sources
        try:
            if path.is_file() and file_digest(path) == wheel.sha256:
                return path
            local = sources.near(wheel.file)
            if local is not None:
                return self._copy(wheel, local, path)
            if self._take(wheel, path):
                return path
            if sources.offline:  # what had the name and the size was another file
                raise sources.absent(wheel.file)
            url = self._urls.get(wheel.file) or self._index.find(wheel)
            if url.startswith("file:"):
                return self._copy(wheel, local_path(url), path)
            return self._fetch_checked(wheel, url, path)
        except OSError as error:
            raise disk_error(error, path) from error

    def _take(self, wheel: Wheel, path: Path) -> bool:
        """Bring a wheel that is kept to `path`; return whether it is there, and the right one."""
        kept, part = self._index.sources.kept, path.with_name(f"{path.name}.kept")
        if kept is None or not take_kept(kept, wheel.file, part):
            return False
        if file_digest(part) != wheel.sha256:
            part.unlink()
            with contextlib.suppress(OSError):
                (kept / wheel.file).unlink()
            return False
        part.replace(path)
        return True

    def _copy(self, wheel: Wheel, source: Path, path: Path) -> Path:
        """Copy `source`; it is not linked, so that a change of one file leaves the other alone."""
        if not source.is_file():
            raise Error("file-not-on-index", file=wheel.file, url=str(source))
        part = _own_part(path)
        shutil.copyfile(source, part)
        if file_digest(part) != wheel.sha256:
            part.unlink()
            raise Error("download-hash-mismatch", file=wheel.file, url=str(source))
        return self._arrived(part, path)

    def _arrived(self, part: Path, path: Path) -> Path:
        """Give a whole file its name, and keep it: what brings the set back names no folder."""
        part.replace(path)
        if self._index.sources.kept is not None:
            keep(self._index.sources.kept, path)
        return path

    def _fetch_checked(self, wheel: Wheel, url: str, path: Path) -> Path:
        part = _own_part(path)

        def size() -> int:
            return part.stat().st_size if part.exists() else 0

        def fetch() -> str:
            return self._fetch(wheel, url, part, size())

        for _ in range(2):  # the partial file of an earlier run may be wrong
            if self._index.retry(fetch, size) == wheel.sha256:
                return self._arrived(part, path)
            part.unlink()
        raise Error("download-hash-mismatch", file=wheel.file, url=without_credentials(url))

    def _fetch(self, wheel: Wheel, url: str, part: Path, have: int) -> str:
        """Complete `part`, which has `have` bytes, and return its hash."""
        if wheel.size and have >= wheel.size:
            return file_digest(part)
        with self._index.read(url, have) as (start, chunks):
            if start < 0:  # the file of the index is shorter
                return file_digest(part)
            digest = hash_of(part) if start else hashlib.sha256()
            have = start
            with part.open("ab" if start else "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                    digest.update(chunk)
                    have += len(chunk)
                    self._report(wheel, have)
                    if wheel.size and have > wheel.size:
                        return "longer than it can be"
        if have < wheel.size:
            shown = without_credentials(url)
            raise TransferInterrupted(Error("download-truncated", file=wheel.file, url=shown))
        return digest.hexdigest()

    def _report(self, wheel: Wheel, moved: int) -> None:
        with self._lock:
            self._moved[wheel.file] = moved
            self._coming.add(wheel)
            done = sum(self._moved.values())
            total = sum(each.size for each in self._coming)
        self._progress(
            "download", done=done, total=total, file=wheel.file, have=moved, size=wheel.size
        )


def _own_part(path: Path) -> Path:
    """Return where `path` is completed; what lies there and is no file of its own goes.

    A link would be followed, a pipe waited for, and a file that has another name changed there.
    """
    part = path.with_name(f"{path.name}.part")
    with contextlib.suppress(FileNotFoundError):
        about = part.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            part.unlink()
    return part


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
