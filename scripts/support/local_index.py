"""A package index on this machine, with faults where a test wants them.

Serves the wheels of one folder, as HTML or JSON pages, from a thread. Also makes the stand-in
wheels.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar
from urllib.parse import unquote

from packaging.utils import canonicalize_name, parse_wheel_filename

S = TypeVar("S", bound="Serving")
Fault = Literal[
    "missing", "busy", "reset", "truncated", "trickle", "other-bytes", "other-range", "denied"
]


@dataclass(kw_only=True)
class Behaviour:
    """What the index does; a test changes it while it runs."""

    json: bool = False
    hashes: bool = True
    faults: dict[str, Fault] = field(default_factory=dict)
    """File or project name → fault."""
    times: dict[str, int] = field(default_factory=dict)
    """How often a fault still happens; without a number always."""
    page: tuple[str, str] | None = None
    """Content type and text for every project page."""
    no_ranges: bool = False
    absolute: bool = False
    """Links with scheme and host, as some mirrors write them."""
    attributes: dict[str, str] = field(default_factory=dict)
    """File → what its link says besides: `data-yanked=""`."""
    login: str | None = None
    """What to demand, as `name:password`."""
    listed: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Project → names and SHA-256 of files that its page has, too, and nobody can get."""
    requests: list[str] = field(default_factory=list)
    """`GET /path bytes=0-`, in the order they came."""


class Serving:
    """A server on this machine that answers from threads of its own; a context manager."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.server = _Server(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]
        self._thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self: S) -> S:  # noqa: PYI019 - Self is 3.11's
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class LocalIndex(Serving):
    """The index."""

    def __init__(
        self, folder: Path, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        """Serve `folder`; with `tls` as https. Clients know it as `host`."""
        self.folder = folder
        self.behaviour = Behaviour()
        outer = self

        class Handler(_Handler):
            index = outer

        super().__init__(Handler)
        if tls is not None:  # the handshake is made in the thread of the request
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'s' if tls else ''}://{host}:{self.port}/simple"

    def html(self, path: str, name: str, rows: list[tuple[str, str]]) -> str:
        """Return the page at `path` of project `name`, whose files and digests are `rows`."""
        del name
        fragment = "#sha256={}" if self.behaviour.hashes else ""
        up = "../" * len(path.strip("/").split("/"))
        if self.behaviour.absolute:
            up = self.url.removesuffix("simple")
        links = "".join(
            f'<a href="{up}files/{file}{fragment.format(digest)}"'
            f"{self.behaviour.attributes.get(file, '')}>{file}</a><br>\n"
            for file, digest in rows
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that goes away in the middle is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index: LocalIndex

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer as for GET, without the body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer a project page or a file."""
        behaviour = self.index.behaviour
        asked = self.headers.get("Range", "")
        behaviour.requests.append(f"{self.command} {self.path} {asked}".strip())
        name = unquote(self.path.rstrip("/").rpartition("/")[2])
        fault = self._fault(name)
        login = base64.b64encode((behaviour.login or "").encode()).decode()
        if behaviour.login and self.headers.get("Authorization") != f"Basic {login}":
            self._send(401, b"who are you", "text/plain")
        elif fault == "denied":
            self._send(403, b"no", "text/plain")
        elif fault == "missing":
            self._send(404, b"not here", "text/html")
        elif fault == "busy":
            self._send(503, b"busy", "text/plain")
        elif fault == "reset" and not name.endswith(".whl"):
            self.close_connection = True
        elif name.endswith(".whl"):
            self._send_file(self.index.folder / name, fault)
        elif name.endswith(".whl.metadata"):
            path = self.index.folder / name.removesuffix(".metadata")
            self._send(200, metadata_of(path), "text/plain")
        else:
            self._send_page(canonicalize_name(name))

    def _fault(self, name: str) -> Fault | None:
        behaviour = self.index.behaviour
        fault = behaviour.faults.get(name)
        if fault is not None and name in behaviour.times:
            behaviour.times[name] -= 1
            if behaviour.times[name] < 0:
                return None
        return fault

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_page(self, name: str) -> None:
        behaviour = self.index.behaviour
        if behaviour.page is not None:
            self._send(200, behaviour.page[1].encode(), behaviour.page[0])
            return
        files = [
            path
            for path in sorted(self.index.folder.glob("*.whl"))
            if parse_wheel_filename(path.name)[0] == name
        ]
        listed = behaviour.listed.get(name, [])
        if not files and not listed:
            self._send(404, b"not here", "text/html")
            return
        rows = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
        rows += listed
        if behaviour.json:
            documents = [
                {"filename": file, "url": f"/files/{file}", "hashes": {"sha256": digest}}
                for file, digest in rows
            ]
            document = {"meta": {"api-version": "1.0"}, "name": name, "files": documents}
            kind = "application/vnd.pypi.simple.v1+json"
            self._send(200, json.dumps(document).encode(), kind)
            return
        self._send(200, self.index.html(self.path, name, rows).encode(), "text/html")

    def _send_file(self, path: Path, fault: Fault | None) -> None:
        if not path.is_file():
            self._send(404, b"not here", "text/html")
            return
        data = path.read_bytes()
        if fault == "other-bytes":
            data = bytes(255 - byte for byte in data)
        total, start = len(data), 0
        asked = self.headers.get("Range", "")
        ranged = asked.startswith("bytes=") and not self.index.behaviour.no_ranges
        end = total
        if ranged:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = (
                (int(first), int(last) + 1 if last else total)
                if first
                else (
                    max(total - int(last), 0),
                    total,
                )
            )
        if start >= total:
            self._send(416, b"", "text/plain")
            return
        end = min(end, total)
        self.send_response(206 if ranged else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        if ranged:
            said = start + (fault == "other-range")
            self.send_header("Content-Range", f"bytes {said}-{end - 1}/{total}")
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(data[start:end], fault)

    def _send_body(self, body: bytes, fault: Fault | None) -> None:
        if fault in {"reset", "truncated"}:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            if fault == "reset":
                self.connection.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: a real reset
            self.connection.close()
            return
        if fault == "trickle":
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.05)
            return
        self.wfile.write(body)


def metadata_of(path: Path) -> bytes:
    """Return the METADATA of the wheel at `path`, which a page may offer beside it (PEP 658)."""
    with zipfile.ZipFile(path) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return wheel.read(name)


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, str | bytes] | None = None,
    requires: Iterable[str] = (),
    extras: Iterable[str] = (),
    scripts: Mapping[str, str] | None = None,
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel with these files into `folder` and return its path.

    `scripts` are console scripts: name → `module:function`. A path with a slash at its end is a
    folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    contents = {path: _bytes(text) for path, text in (files or {}).items()}
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    head += "".join(f"Requires-Dist: {line}\n" for line in requires)
    head += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
    contents[f"{info}/METADATA"] = head.encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    )
    if scripts:
        rows = "".join(f"{script} = {target}\n" for script, target in scripts.items())
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{rows}".encode()
    record = "".join(
        f"{path},{_hash(data)},{len(data)}\n"
        for path, data in contents.items()
        if not path.endswith("/")
    )
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, data in contents.items():
            about = zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0))
            about.external_attr = (0o40755 if member.endswith("/") else 0o100644) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(about, data)
    return path


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
