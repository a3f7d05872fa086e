"""Ask a package index: which files it offers, and what is in them.

The only module that uses the network. It is patient with an index that stumbles (another
try, after a pause) and not with one that stalls (a limit on every wait, a floor on the throughput).
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, local
from typing import TypeVar
from urllib.parse import quote

import requests
import urllib3

from ..errors import Error
from ..plan.wheels import PYPI, Wheel
from .config import IndexConfig, is_trusted, require_secure
from .credentials import Credentials
from .folder import folder_page, local_path
from .network_errors import TransferInterrupted, network_error, reason_of
from .page import ACCEPT, IndexFile, parse_index_page, without_credentials

_CHUNK = 1 << 20
_MAX_PAGE = 128 << 20
_AGAIN = frozenset({429, 500, 502, 503, 504})
_NO_SUCH_RANGE = 416
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to give up on an index."""

    connect: float = 10
    """Seconds until a connection must stand."""
    read: float = 20
    """Seconds between two pieces of an answer."""
    window: float = 60
    """Seconds over which the throughput is measured."""
    floor: int = 4096
    """Bytes a second; slower than this over a whole window is given up."""
    pauses: tuple[float, ...] = (0.5, 2.0)
    """Seconds before the second try, the third, …; one try more than there are pauses."""


class TransferStopped(BaseException):
    """A download ends because another one failed, or because the user said so."""


class Index:
    """The package indexes, as the user's configuration says how to reach them."""

    def __init__(self, sources: IndexConfig, limits: Limits | None = None) -> None:
        self.sources = sources
        self.stop = Event()
        """Set it to end every download at its next piece."""
        self._limits = limits or Limits()
        self._local = local()
        self._pages: dict[str, tuple[IndexFile, ...]] = {}
        self._bases = {url.rstrip("/") for url in (sources.index_url, sources.torch_index) if url}
        self._credentials = Credentials(sources.keyring)

    def find(self, wheel: Wheel) -> str:
        """Return the address of `wheel` on its index, found by its file name or else by its hash.

        Raises Error `file-not-on-index`, `index-page-unreadable`, and whatever `read` raises.
        """
        page, files = self.project(wheel.index_url, wheel.name)
        found = next((file for file in files if file.name == wheel.file), None) or next(
            (file for file in files if file.sha256 == wheel.sha256), None
        )
        if found is None:
            raise Error("file-not-on-index", file=wheel.file, url=page)
        return found.url

    def project(self, base: str, name: str) -> tuple[str, tuple[IndexFile, ...]]:
        """Return the address of the page of project `name`, as it may be shown, and its files.

        `base` is the index: `pypi` for the default one, else its address. Raises as `find` does.
        """
        base = (self.sources.index_url if base == PYPI else base).rstrip("/")
        self._bases.add(base)
        page = f"{base}/{quote(name)}/"
        if page not in self._pages:
            self._pages[page] = (
                folder_page(page)
                if page.startswith("file:")
                else self.retry(lambda: self._get_page(page))
            )
        return without_credentials(page), self._pages[page]

    def size(self, url: str) -> int:
        """Return how many bytes the file at `url` has; 0 where the server does not say."""
        if url.startswith("file:"):
            return local_path(url).stat().st_size

        def ask() -> int:
            with self._open(url, {}, method="HEAD") as response:
                length = response.headers.get("Content-Length", "")
                return int(length) if response.ok and length.isdigit() else 0

        return self.retry(ask)

    def retry(self, step: Callable[[], T], moved: Callable[[], int] = lambda: 0) -> T:
        """Return what `step` returns, trying again, after a pause, as often as the limits say.

        Where `moved` (bytes so far) has grown since the last try, the counting begins anew: a
        large file over a poor network is a long story, but one with an end.
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
        """Open `url` and give where its bytes begin, `start` or else 0, and the bytes.

        Raises Interrupted where another try may go well; else Error `index-certificate`,
        `index-proxy`, `index-refused`, `index-insecure`, `download-too-slow`.
        """
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self._open(url, headers) as response:
            if response.status_code == _NO_SUCH_RANGE and start:
                yield -1, iter(())
                return
            _refuse(response, url)
            resumed = response.status_code == requests.codes.partial_content
            if resumed and not response.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            ):
                raise Error(
                    "index-refused", url=without_credentials(url), status="206, another range"
                )
            yield (start if resumed else 0), self._chunks(response, url)

    def _get_page(self, page: str) -> tuple[IndexFile, ...]:
        body = bytearray()
        with self._open(page, {"Accept": ACCEPT}) as response:
            _refuse(response, page)
            for chunk in self._chunks(response, page):
                body += chunk
                if len(body) > _MAX_PAGE:
                    raise Error(
                        "index-page-unreadable",
                        url=without_credentials(page),
                        problem="it never ends",
                    )
            kind, base = response.headers.get("Content-Type", ""), response.url
        return parse_index_page(kind, body.decode("utf-8", errors="replace"), base)

    def _open(self, url: str, headers: dict[str, str], method: str = "GET") -> requests.Response:
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        session: requests.Session = self._local.session
        sources = self.sources
        if not without_credentials(url).startswith(sources.flagged):
            require_secure(url, sources)
        verify: str | bool = sources.cert or True
        if is_trusted(url, sources):
            verify = False
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        proxies = {"http": sources.proxy, "https": sources.proxy} if sources.proxy else None
        try:
            return session.request(
                method,
                url,
                allow_redirects=True,
                headers={"Accept-Encoding": "identity", **headers},
                stream=True,
                timeout=(self._limits.connect, self._limits.read),
                verify=verify,
                cert=sources.client_cert,
                proxies=proxies,
                auth=self._credentials.of(url, self._bases),
            )
        except (requests.exceptions.SSLError, OSError) as error:
            raise network_error(error, url) from error

    def _chunks(self, response: requests.Response, url: str) -> Iterator[bytes]:
        """Give the bytes of `response` as they come, and give up where hardly any do."""
        began, moved = time.monotonic(), 0
        read = getattr(response.raw, "read1", response.raw.read)  # read1 returns what is there
        while True:
            if self.stop.is_set():
                raise TransferStopped
            try:
                chunk: bytes = read(_CHUNK)
            except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
                lost = Error(
                    "index-unreachable", url=without_credentials(url), reason=reason_of(error)
                )
                raise TransferInterrupted(lost) from error
            if not chunk:
                return
            yield chunk
            moved += len(chunk)
            passed = time.monotonic() - began
            if passed >= self._limits.window:
                if moved < self._limits.floor * passed:
                    raise Error(
                        "download-too-slow", url=without_credentials(url), speed=int(moved / passed)
                    )
                began, moved = time.monotonic(), 0


def _refuse(response: requests.Response, url: str) -> None:
    if response.status_code in {requests.codes.ok, requests.codes.partial_content}:
        return
    error = Error("index-refused", url=without_credentials(url), status=response.status_code)
    if response.status_code in _AGAIN:
        raise TransferInterrupted(error)
    raise error
