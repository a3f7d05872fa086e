"""Files on a web server, for the scripts: in parts with HTTP range requests, and pages."""

from __future__ import annotations

import threading
import time

import requests

from ortgpu_fix.evidence.errors import EvidenceError
from ortgpu_fix.evidence.wheels import IndexWheel

from .index import JSON_TYPE, parse_page

TIMEOUT = 60.0
ATTEMPTS = 4
_TRY_AGAIN = frozenset({429, 500, 502, 503, 504})


class Web:
    """GET requests with a time limit and retries; counts the bytes received. Thread-safe."""

    def __init__(self) -> None:
        self._sessions = threading.local()
        self._lock = threading.Lock()
        self.bytes_received = 0

    def get(self, url: str, headers: dict[str, str] | None = None) -> requests.Response:
        """Return a successful response (2xx), or raise `EvidenceError` after the last attempt."""
        problem = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(2**attempt)
            try:
                response = self._session().get(url, headers=headers, timeout=TIMEOUT)
            except requests.RequestException as error:
                problem = repr(error)
                continue
            with self._lock:
                self.bytes_received += len(response.content)
            if response.ok:
                return response
            problem = f"HTTP {response.status_code}"
            if response.status_code not in _TRY_AGAIN:
                break
        raise EvidenceError(f"{url}: {problem}")

    def get_range(self, url: str, byte_range: str) -> tuple[bytes, int]:
        """Return the bytes of `byte_range` (`0-99`, `-500`) and the size of the whole file."""
        response = self.get(url, {"Range": f"bytes={byte_range}", "Accept-Encoding": "identity"})
        if response.status_code != requests.codes.partial_content:
            raise EvidenceError(f"{url}: the server ignores range requests")
        total = response.headers.get("Content-Range", "").rpartition("/")[2]
        if not total.isdigit():
            raise EvidenceError(f"{url}: the answer to a range request has no Content-Range")
        return response.content, int(total)

    def wheels(self, index_url: str, distribution: str) -> list[IndexWheel]:
        """Return the wheels of a project page of the index."""
        url = f"{index_url.rstrip('/')}/{distribution}/"
        response = self.get(url, {"Accept": f"{JSON_TYPE}, text/html;q=0.5"})
        return parse_page(response.text, response.url, response.headers.get("Content-Type", ""))

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._sessions, "session", None)
        if session is None:
            session = self._sessions.session = requests.Session()
        return session
