"""Package indexes: pages and parts of files. Beside uv this module alone uses the network.

A failed request is tried again after a pause; a transfer that stalls is ended by a limit on every
wait and a minimum throughput.
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from threading import Event, local
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from ..errors import Error, cause
from ..plan.wheels import PYPI, Pinned
from ..utils.background_call import BackgroundCall
from ..versions import count
from .config import IndexConfig, is_trusted, require_secure
from .credentials import Credentials
from .folder import folder_page, local_path
from .network_errors import TransferInterrupted, network_error, reason_of
from .page import ACCEPT, IndexFile, parse_index_page, without_credentials

if TYPE_CHECKING:
    import requests  # it takes a while, and uv downloads by itself

_CHUNK = 1 << 16
"""Bytes to read at a time: no more arrives at once, and room for more costs time."""
_MAX_PAGE = 128 << 20
_AGAIN = frozenset({429, 500, 502, 503, 504})
_NO_SUCH_RANGE = 416
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to give up on an index."""

    connect: float = 10
    """Seconds to wait for a connection."""
    read: float = 20
    """Seconds between two pieces of a response."""
    answer: float = 60
    """Seconds until the body begins: a server may send its headers a byte at a time."""
    window: float = 60
    """Seconds over which the throughput is measured."""
    floor: int = 4096
    """Bytes a second over a whole window, at least."""
    pauses: tuple[float, ...] = (0.5, 2.0)
    """Seconds before the second try, the third, …, and the last."""


class TransferStopped(BaseException):
    """A download ends because another one failed, or because the user interrupted it."""


class Index:
    """The package indexes that the user has configured."""

    def __init__(self, sources: IndexConfig, limits: Limits | None = None) -> None:
        self.sources = sources
        self.stop = Event()
        """Set it to end every download at its next piece."""
        self._limits = limits or Limits()
        self._local = local()
        self._pages: dict[str, tuple[IndexFile, ...]] = {}
        named = (sources.index_url, sources.torch_index, sources.tensorrt_index)
        self._bases = {url.rstrip("/") for url in named if url}
        self._credentials = Credentials(sources.keyring)

    def project(self, base: str, name: str) -> tuple[str, tuple[IndexFile, ...]]:
        """Return the address, without credentials, of the page of project `name`, and its files.

        `base` is the index: `pypi` for the default one, else its address. Raises Error
        `index-page-unreadable`, and whatever `read` raises.
        """
        base = (self.sources.index_url if base == PYPI else base).rstrip("/")
        self._bases.add(base)
        page = f"{base}/{quote(name)}/"
        if page not in self._pages:
            get_page = folder_page if page.startswith("file:") else self._get_page
            self._pages[page] = self.retry(lambda: get_page(page))
        return without_credentials(page), self._pages[page]

    def size(self, url: str) -> int:
        """Return how many bytes the file at `url` has; 0 where the server does not say."""
        if url.startswith("file:"):
            return local_path(url).stat().st_size

        def ask() -> int:
            with self._open(url, {}, method="HEAD") as response:
                length = response.headers.get("Content-Length", "")
                return count(length) or 0 if response.ok else 0

        return self.retry(ask)

    def sized(self, pinned: Pinned) -> Pinned:
        """Return a wheel with its size, which the pages of some indexes do not have."""
        wheel, url = pinned
        if wheel.size or (self.sources.offline and not url.startswith("file:")):
            return pinned
        return Pinned(wheel._replace(size=self.size(url)), url)

    def retry(self, step: Callable[[], T], moved: Callable[[], int] = lambda: 0) -> T:
        """Return what `step` returns; after TransferInterrupted it is tried again.

        Where `moved` (bytes so far) has grown since the last try, the count of tries starts again,
        so that a large file arrives over a poor network too.
        """
        tries, reached = 0, moved()
        while True:
            try:
                return step()
            except TransferInterrupted as interrupted:  # noqa: PERF203 - the point of the loop
                if moved() > reached:
                    tries, reached = 0, moved()
                if tries == len(self._limits.pauses):
                    raise interrupted.error from interrupted
                if self.stop.wait(self._limits.pauses[tries]):
                    raise TransferStopped from None
                tries += 1

    @contextlib.contextmanager
    def read(self, url: str, start: int = 0) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Open `url` and give where its bytes begin, and the bytes.

        They begin at `start`, or at 0 where the server cannot resume; -1 where the file is shorter.
        Raises TransferInterrupted where another try may succeed; else Error `index-certificate`,
        `index-proxy`, `index-refused`, `index-insecure`, `download-too-slow`.
        """
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self._open(url, headers) as response:
            if response.status_code == _NO_SUCH_RANGE and start:
                yield -1, iter(())
                return
            _refuse(response, url)
            resumed = response.status_code == HTTPStatus.PARTIAL_CONTENT
            begins = response.headers.get("Content-Range", "")
            if resumed and not begins.startswith(f"bytes {start}-"):
                shown = without_credentials(url)
                raise Error("index-refused", url=shown, status=cause("range-other"))
            yield (start if resumed else 0), self._chunks(response, url)

    def read_part(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return the bytes of `byte_range` (`0-99`, `-500`), and the size of the whole file.

        Raises Error `index-without-ranges`, and what `read` raises.
        """

        def ask() -> tuple[bytes, int]:
            with self._open(url, {"Range": f"bytes={byte_range}"}) as response:
                _refuse(response, url)
                total = count(response.headers.get("Content-Range", "").rpartition("/")[2])
                partial = response.status_code == HTTPStatus.PARTIAL_CONTENT
                if not partial or total is None:
                    raise Error("index-without-ranges", url=without_credentials(url))
                return b"".join(self._chunks(response, url)), total

        return self.retry(ask)

    def _get_page(self, page: str) -> tuple[IndexFile, ...]:
        body = bytearray()
        with self._open(page, {"Accept": ACCEPT}) as response:
            _refuse(response, page)
            for chunk in self._chunks(response, page):
                body += chunk
                if len(body) > _MAX_PAGE:
                    shown = without_credentials(page)
                    raise Error("index-page-unreadable", url=shown, problem=cause("page-endless"))
            kind, base = response.headers.get("Content-Type", ""), response.url
        return parse_index_page(kind, body.decode("utf-8", errors="replace"), base)

    def _open(self, url: str, headers: dict[str, str], method: str = "GET") -> requests.Response:
        import requests
        import urllib3

        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        session: requests.Session = self._local.session
        sources = self.sources
        if not without_credentials(url).startswith(sources.flagged):
            require_secure(url, sources)
        trusted = is_trusted(url, sources)
        if trusted:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        proxies = {"http": sources.proxy, "https": sources.proxy} if sources.proxy else None
        auth = self._credentials.of(url, self._bases)

        def ask() -> requests.Response:
            return session.request(
                method,
                url,
                allow_redirects=True,
                headers={"Accept-Encoding": "identity", **headers},
                stream=True,
                timeout=(self._limits.connect, self._limits.read),
                verify=not trusted and (sources.cert or True),
                cert=sources.client_cert,
                proxies=proxies,
                auth=auth,
            )

        def close(response: requests.Response) -> None:
            response.close()
            session.close()

        try:
            return BackgroundCall(ask, close).result(self._limits.answer, self.stop)
        except TimeoutError:
            del self._local.session  # its connection is still waited on
            if self.stop.is_set():  # why it ends is reported by the download that failed
                raise TransferStopped from None
            late = Error(
                "index-unreachable", url=without_credentials(url), reason=cause("no-answer-in-time")
            )
            raise TransferInterrupted(late) from None
        except (OSError, ValueError) as error:  # requests lets some odd addresses through
            raise network_error(error, url) from error

    def _chunks(self, response: requests.Response, url: str) -> Iterator[bytes]:
        """Yield the bytes of `response` as they arrive. Raises Error `download-too-slow`."""
        import urllib3

        began, moved = time.monotonic(), 0
        read = getattr(response.raw, "read1", response.raw.read)  # does not wait for all
        while True:
            if self.stop.is_set():
                raise TransferStopped
            try:
                chunk: bytes = read(_CHUNK)
            except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
                shown, why = without_credentials(url), reason_of(error)
                interrupted = Error("index-unreachable", url=shown, reason=why)
                raise TransferInterrupted(interrupted) from error
            if not chunk:
                return
            yield chunk
            moved += len(chunk)
            passed = time.monotonic() - began
            if passed >= self._limits.window:
                if moved < self._limits.floor * passed:
                    speed = int(moved / passed)
                    raise Error("download-too-slow", url=without_credentials(url), speed=speed)
                began, moved = time.monotonic(), 0


def _refuse(response: requests.Response, url: str) -> None:
    if response.status_code in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
        return
    error = Error("index-refused", url=without_credentials(url), status=response.status_code)
    if response.status_code in _AGAIN:
        raise TransferInterrupted(error)
    raise error
