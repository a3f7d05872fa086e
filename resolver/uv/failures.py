"""Why uv failed, in our own words where the reason is an index, a hash, a disk or a Python.

uv's words say which distribution or which address it was about; what is wrong there the index
itself is asked.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

from packaging.utils import canonicalize_name

from ..errors import Cause, Error, cause
from ..facts.target import Target
from ..index.client import Index
from ..index.page import without_credentials
from ..index.pinning import check_offered
from ..index.wheel_choice import WheelTarget
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.child_environment import child_environment
from ..utils.process import Finished, Runner
from .project import Question

_URL = re.compile(r"https?://[^\s`\"')]+")
_OF_ONE = re.compile(r"`([\w.-]+)==[^`]+`|\b([\w.-]+) was not found in the cache")
"""uv names the distribution that a failure is about."""
_ABSENT = re.compile(r"\b([\w.-]+) was not found in the package registry")
_FULL = re.compile(r"os error (?:27|28|112|122)\b|SIGXFSZ|No space left|Disk quota|File too large")
"""Source: EFBIG, ENOSPC, ERROR_DISK_FULL of Windows, EDQUOT."""
_OTHER_FILE = re.compile(r"Hash mismatch|Failed to extract|[Ii]nvalid zip|CRC")
_FETCHING = re.compile(r"Failed to (?:fetch|download)|timed out|error decoding|error sending")
_READ_SECONDS = 60.0
_LINES = 12


def said_by(done: Finished, seconds: float) -> Cause | str:
    """Return the last lines that uv wrote, or that it did not end in `seconds`."""
    if done.timed_out:
        return cause("engine-endless", seconds=f"{seconds:.0f}")
    lines = [line.rstrip() for line in (done.stderr.strip() or done.stdout.strip()).splitlines()]
    return "\n".join([line for line in lines if line][-_LINES:]) or f"exit {done.returncode}"


def check_python(target: Target | None, environ: Mapping[str, str], runner: Runner) -> None:
    """Raise Error `python-prints` where the Python of `target` prints when it starts.

    uv cannot read such a one: it asks a Python what it is, and more than the answer comes.
    """
    if target is None:
        return
    argv = [target.executable, "-I", "-c", "pass"]
    with contextlib.suppress(OSError):
        done = runner(argv, timeout=_READ_SECONDS, env=child_environment(environ, "look"))
        if done.stdout.strip():
            first = done.stdout.strip().splitlines()[0]
            raise Error("python-prints", path=target.executable, printed=first)


def compile_failure(
    done: Finished, question: Question, index: Index, folders: Sequence[Path], seconds: float
) -> Error:
    """Return why uv could not compile; it writes into `folders`.

    Raises the Error of an index that is the reason.
    """
    said, text = said_by(done, seconds), f"{done.stdout}\n{done.stderr}"
    if _FULL.search(text):
        return _disk_full(folders)
    # A torch whose file nobody knows is the likeliest to be missing, whatever uv came upon first.
    lacking = [wheel for wheel in question.wheels if not wheel.file or _names(text, wheel.name)]
    lacking = [wheel for wheel in lacking if index.sources.near(wheel.file or "-") is None]
    lacking.sort(key=lambda wheel: bool(wheel.file))
    if index.sources.offline:
        if lacking:
            files = (wheel.file or f"{wheel.name} {wheel.version}" for wheel in lacking)
            return index.sources.absent(", ".join(files))
    else:
        fit = WheelTarget(python=question.version, tags=question.tags)
        for wheel in lacking:
            with _pointing(wheel.index_url, question.wheels):
                check_offered(wheel, index, fit)
        for name in dict.fromkeys(_ABSENT.findall(text)):
            _check_page(index, PYPI, name)
        for url in _addresses(text):
            base, _, name = url.rstrip("/").rpartition("/")
            with _pointing(base, question.wheels):
                if name.endswith((".whl", ".metadata")):
                    check_address(index, url)
                else:
                    _check_page(index, base, name)
    return Error("requirements-impossible", requires=question.names, said=said)


def install_failure(
    done: Finished, pinned: Sequence[Pinned], index: Index, folders: Sequence[Path], seconds: float
) -> Error:
    """Return why uv could not install `pinned`; it writes into `folders`.

    Raises the Error of an index that is the reason.
    """
    said, text = said_by(done, seconds), f"{done.stdout}\n{done.stderr}"
    names = {canonicalize_name(name) for found in _OF_ONE.findall(text) for name in found}
    named = [pin for pin in pinned if pin.wheel.name in names]
    if _FULL.search(text):
        return _disk_full(folders)
    for pin in named[:1] if _OTHER_FILE.search(text) else ():
        url = without_credentials(pin.url)
        return Error("download-hash-mismatch", file=pin.wheel.file, url=url)
    if index.sources.offline:
        absent = [pin.wheel.file for pin in named]
        if absent:
            return index.sources.absent(", ".join(absent))
    elif _FETCHING.search(text):
        for pin in named:
            with _pointing(pin.wheel.index_url, [pin.wheel]):
                check_address(index, pin.url)
        for url in _addresses(text):
            check_address(index, url)
        for pin in named[:1]:
            url = without_credentials(pin.url)
            return Error("download-truncated", file=pin.wheel.file, url=url)
    return Error("install-failed", said=said)


def _disk_full(folders: Sequence[Path]) -> Error:
    full = min(folders, key=lambda folder: shutil.disk_usage(folder).free)
    return Error("disk-full", folder=str(full))


@contextlib.contextmanager
def _pointing(base: str, wheels: Iterable[Wheel]) -> Iterator[None]:
    """Let an error of the index at `base` name the flag by which another one is chosen."""
    try:
        yield
    except Error as error:
        names = [wheel.name for wheel in wheels if wheel.index_url == base != PYPI]
        if names:
            tensorrt = names[0].startswith("tensorrt")
            error.values["flag"] = "--tensorrt-index-url" if tensorrt else "--torch-index-url"
        raise


def check_address(index: Index, url: str) -> None:
    """Raise the Error of the server at `url` where it does not give the file there."""
    try:
        index.read_part(url, "0-0")
    except Error as error:
        if error.code != "index-without-ranges":
            raise


def _check_page(index: Index, base: str, name: str) -> None:
    try:
        index.project(base, name)
    except Error as error:
        if error.values.get("status") != HTTPStatus.NOT_FOUND:
            raise


def _addresses(text: str) -> Iterator[str]:
    yield from dict.fromkeys(match.rstrip(".,:") for match in _URL.findall(text))


def _names(text: str, name: str) -> bool:
    """Return whether uv's words are about the distribution `name`."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None
