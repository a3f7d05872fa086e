"""Download wheels into a folder by the addresses of a lock, and check them.

A file is checked against the size and the hash that the caller knows, never against those of an
index. What an earlier run has left is used, and a part of it completed.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from ..errors import Error
from ..plan.wheels import Pinned, Wheel
from ..utils.files import disk_error, file_digest, hash_of
from ..utils.foreign_text import plain_name
from ..utils.progress import Progress
from .client import Index, TransferStopped
from .folder import local_path
from .network_errors import TransferInterrupted
from .page import without_credentials

_AT_ONCE = 4
Moved = Callable[[int], None]
"""Is given how many bytes of a file are there."""


def download_all(
    index: Index, pinned: Sequence[Pinned], into: Path, progress: Progress
) -> tuple[Path, ...]:
    """Bring `pinned` into the folder `into`, several at a time; return their paths in order.

    Every file is whole and has the hash of its wheel. Raises Error `download-hash-mismatch`,
    `download-truncated`, `disk-full`, `disk-failed`, `wheel-escapes` for a name that is not one in
    that folder, and those of `Index`; Ctrl-C ends it at the next piece that arrives.
    """
    moved: dict[str, int] = {}
    total, lock = sum(pin.wheel.size for pin in pinned), Lock()

    def bring(pin: Pinned) -> Path:
        def report(have: int) -> None:
            with lock:
                moved[pin.wheel.file] = have
                done = sum(moved.values())
            file, size = pin.wheel.file, pin.wheel.size
            progress("download", done=done, total=total, file=file, have=have, size=size)

        return download(index, pin, into, report)

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        jobs = [pool.submit(bring, pin) for pin in pinned]
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


def download(index: Index, pin: Pinned, into: Path, moved: Moved = lambda _: None) -> Path:
    """Bring one wheel into the folder `into`; raises as `download_all` does."""
    wheel = pin.wheel
    if plain_name(wheel.file) != wheel.file or not wheel.file:
        raise Error("wheel-escapes", file=wheel.name, member=wheel.file)
    path = into / wheel.file
    part = path.with_name(f"{path.name}.part")
    try:
        into.mkdir(parents=True, exist_ok=True)
        if path.is_file() and file_digest(path) == wheel.sha256:
            moved(wheel.size)
            return path
        _own(part)
        if pin.url.startswith("file:"):
            source = local_path(pin.url)
            if not source.is_file():
                raise Error("file-not-on-index", file=wheel.file, url=str(source))
            shutil.copyfile(source, part)  # no link: a change of one leaves the other alone
            digests = [file_digest(part)]
        else:
            # The partial file of an earlier run may be wrong: then it comes a second time.
            digests = [_fetch(index, wheel, pin.url, part, moved)]
            if digests[0] != wheel.sha256:
                part.unlink()
                digests.append(_fetch(index, wheel, pin.url, part, moved))
        if digests[-1] != wheel.sha256:
            part.unlink()
            shown = without_credentials(pin.url)
            raise Error("download-hash-mismatch", file=wheel.file, url=shown)
        part.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    return path


def _fetch(index: Index, wheel: Wheel, url: str, part: Path, moved: Moved) -> str:
    """Complete `part`, over as many connections as it takes, and return its hash."""

    def have() -> int:
        return part.stat().st_size if part.exists() else 0

    return index.retry(lambda: _fetch_once(index, wheel, url, part, have(), moved), have)


def _fetch_once(  # noqa: PLR0917
    index: Index, wheel: Wheel, url: str, part: Path, have: int, moved: Moved
) -> str:
    if wheel.size and have >= wheel.size:
        return file_digest(part)
    with index.read(url, have) as (start, chunks):
        if start < 0:  # the file of the server is shorter
            return file_digest(part)
        digest = hash_of(part) if start else hashlib.sha256()
        have = start
        with part.open("ab" if start else "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                have += len(chunk)
                moved(have)
                if wheel.size and have > wheel.size:
                    return "longer than it can be"
    if have < wheel.size:
        shown = without_credentials(url)
        raise TransferInterrupted(Error("download-truncated", file=wheel.file, url=shown))
    return digest.hexdigest()


def _own(part: Path) -> None:
    """Remove what lies where a file is completed, and is no file of its own.

    A link would be followed, a pipe waited for, and a file that has another name changed there.
    """
    if part.exists() or part.is_symlink():
        about = part.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            part.unlink()
