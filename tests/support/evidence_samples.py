"""Small hand-made binaries and a package index, for the tests of `scripts/evidence`."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from ortgpu_fix.guests.update.index_source import IndexSource
from ortgpu_fix.index import client
from ortgpu_fix.index.config import IndexConfig
from support.local_index import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


def fatbin_entry(
    target: int, *, flags: int = 0x11, kind: int = 2, payload: bytes = b"\0" * 16
) -> bytes:
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *(kind, 0x101, 64, len(payload), 0, 0, 8, 1, target, 0, 0, flags, 0, 0),
    )
    return header[:64].ljust(64, b"\0") + payload


def fatbin(*entries: bytes) -> bytes:
    """Return a fatbin container with these entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def elf_symbol(*, name_at: int, info: int = 0x12) -> bytes:
    """Return the entry of an exported symbol whose name lies at `name_at` in the strings."""
    return struct.pack("<IBBHQQ", name_at, info, 0, 7, 0x1000, 8)


def elf(
    *,
    name: str = "",
    links: Sequence[str] = (),
    search: str = "",
    imports: Mapping[str, Sequence[str]] | None = None,
    exports: Sequence[str] = (),
    local: Sequence[str] = (),
    extra: bytes = b"",
) -> bytes:
    """Return a 64-bit ELF shared library; imports are versioned (`library -> symbols`).

    Laid out as linkers do: symbols and strings in front, `extra` (code), then what points at them.
    """
    imports = imports or {}
    strings = bytearray(b"\0")

    def string(text: str) -> int:
        at = len(strings)
        strings.extend(text.encode() + b"\0")
        return at

    symbols = [bytes(24), *(elf_symbol(name_at=string(symbol), info=2) for symbol in local)]
    versions = [0] * len(symbols)
    needed_versions = bytearray()
    for number, (library, names) in enumerate(imports.items()):
        for symbol in names:
            symbols.append(struct.pack("<IBBHQQ", string(symbol), 0x12, 0, 0, 0, 0))
            versions.append(number + 2 if library else 1)
        if library:
            last = number == len(imports) - 1
            needed_versions += struct.pack("<HHIII", 1, 1, string(library), 16, 0 if last else 32)
            needed_versions += struct.pack("<IHHII", 0, 0, number + 2, string("v1"), 0)
    for symbol in exports:
        symbols.append(elf_symbol(name_at=string(symbol)))
        versions.append(1)
    tags = [(1, string(link)) for link in links]
    tags += [(14, string(name))] if name else []
    tags += [(29, string(search))] if search else []
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in [*tags, (0, 0)])

    body = bytearray(64 + 56)
    places = {}
    for key, data in {
        "symbols": b"".join(symbols),
        "strings": bytes(strings),
        "versions": struct.pack(f"<{len(versions)}H", *versions),
        "needed": bytes(needed_versions),
        "extra": extra,
        "dynamic": dynamic,
    }.items():
        body += bytes(0 if key == "strings" else -len(body) % 8)
        places[key] = (len(body), len(data))
        body += data
    body += bytes(-len(body) % 8)
    kinds = [(11, "symbols", 2), (3, "strings", 0), (0x6FFFFFFF, "versions", 1)]
    kinds += [(0x6FFFFFFE, "needed", 2)] if needed_versions else []
    kinds += [(6, "dynamic", 2)]
    headers = [bytes(64)]
    for kind, key, link in kinds:
        start, size = places[key]
        entry = 24 if key == "symbols" else 16 if key == "dynamic" else 0
        headers.append(
            struct.pack("<IIQQQQIIQQ", 0, kind, 2, start, start, size, link, 1, 8, entry)
        )
    table = len(body)
    body += b"".join(headers)
    body[:64] = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        *(3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, len(headers), 0),
    )
    return bytes(body)


def dll(
    *,
    name: str = "",
    imports: Mapping[str, Sequence[str]] | None = None,
    delayed: Mapping[str, Sequence[str]] | None = None,
    exports: Sequence[str] = (),
    extra: bytes = b"",
    code: bytes = b"",
    machine: int = 0x8664,
    lookup: bool = True,
) -> bytes:
    """Return a 64-bit DLL: a section with everything, and one with the GPU `code` if there is.

    Without `lookup` its imports stand in the address table alone, as some linkers write them.
    """
    base = 0x1000
    data = bytearray()

    def put(raw: bytes) -> int:
        data.extend(bytes(-len(data) % 8))
        at = base + len(data)
        data.extend(raw)
        return at

    def text(value: str) -> int:
        return put(value.encode() + b"\0")

    def thunks(symbols: Sequence[str]) -> int:
        hints = [put(b"\0\0" + symbol.encode() + b"\0") for symbol in symbols]
        return put(struct.pack(f"<{len(hints) + 1}Q", *hints, 0))

    rows = [
        struct.pack("<IIIII", (at := thunks(symbols)) * lookup, 0, 0, text(library), at)
        for library, symbols in (imports or {}).items()
    ]
    import_at = put(b"".join(rows) + bytes(20))
    rows = [
        struct.pack("<IIIIIIII", 1, text(library), 0, 0, thunks(symbols), 0, 0, 0)
        for library, symbols in (delayed or {}).items()
    ]
    delay_at = put(b"".join(rows) + bytes(32))
    export_at = 0
    if name or exports:
        names = [text(symbol) for symbol in exports]
        functions = put(struct.pack(f"<{len(names)}I", *([base] * len(names))))
        ordinals = put(struct.pack(f"<{len(names)}H", *range(len(names))))
        table = put(struct.pack(f"<{len(names)}I", *names))
        export_at = put(
            struct.pack(
                "<IIHHIIIIIII",
                *(0, 0, 0, 0, text(name), 1, len(names), len(names), functions, table, ordinals),
            )
        )
    put(extra)
    directories = [(0, 0)] * 16
    directories[0] = (export_at, 40 if export_at else 0)
    directories[1] = (import_at, 20)
    directories[13] = (delay_at if delayed else 0, 32 if delayed else 0)
    size = len(data) + -len(data) % 512
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII",
        *(0x20B, 14, 40, 0, size, 0, 0, 0, 0x180000000, 0x1000, 512, 6, 0, 0, 0, 6, 0, 0),
        *(0x1000 + size + -size % 0x1000, 0x200, 0, 3, 0, 1 << 20, 4096, 1 << 20, 4096, 0, 16),
    ) + b"".join(struct.pack("<II", *directory) for directory in directories)
    header = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    header += struct.pack(
        "<4sHHIIIHH", b"PE\0\0", machine, 2 if code else 1, 0, 0, 0, len(optional), 0x2022
    )
    header += optional
    header += struct.pack(
        "<8sIIIIIIHHI", b".rdata", len(data), base, size, 512, 0, 0, 0, 0, 0x40000040
    )
    if code:
        header += struct.pack(
            "<8sIIIIIIHHI", b".nv_fatb", len(code), 1 << 24, len(code), 512 + size, *([0] * 5)
        )
    return header.ljust(512, b"\0") + bytes(data).ljust(size, b"\0") + code


def wheel(
    members: Mapping[str, bytes | str], *, requires: Sequence[str] = (), about: str = ""
) -> bytes:
    """Return a zip archive with these members and a METADATA file with `about` at its end."""
    stream = io.BytesIO()
    lines = ["Metadata-Version: 2.1", "Name: x", "Version: 1"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in {**members, "x.dist-info/METADATA": "\n".join(lines) + about}.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), content)
    return stream.getvalue()


class Index:
    """A package index on localhost: HTML project pages, files with range requests."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        """Project to file name to content."""
        self.requests: list[tuple[str, str]] = []
        """Path and Range header of each request."""
        self.ranges = True
        """Whether range requests are answered as such."""
        self.hashes = True
        """Whether a page has the hash of each file."""
        self.failures = 0
        """How many of the next requests are answered with 503."""
        self.broken: set[str] = set()
        """Files that are listed and answered with 410."""
        self.url = ""

    def page(self, project: str) -> str:
        """Return the HTML of a project page."""
        links = [
            f'<a href="/files/{project}/{name}'
            f"{f'#sha256={hashlib.sha256(content).hexdigest()}' if self.hashes else ''}"
            f'">{name}</a><br/>'
            for name, content in self.files[project].items()
        ]
        head = '<head><meta name="pypi:repository-version" content="1.0"></head>'
        return f"<!DOCTYPE html><html>{head}<body>\n" + "\n".join(links) + "\n</body></html>"


def source(url: str, folder: Path) -> IndexSource:
    """Return what reads the index at `url`; a wheel that comes whole alone goes to `folder`."""
    config = IndexConfig(index_url=url, origin="flag")
    return IndexSource(client.Index(config, client.Limits(pauses=(0.01, 0.01, 0.01))), folder)


@contextmanager
def serve() -> Iterator[Index]:
    """Run an `Index` until the block ends."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            index.requests.append((self.path, wanted))
            if index.failures:
                index.failures -= 1
                self._answer(503, b"busy", "text/plain")
                return
            parts = self.path.strip("/").split("/")
            if parts[0] == "simple" and parts[1] in index.files:
                self._answer(200, index.page(parts[1]).encode(), "text/html")
            elif parts[0] == "files" and parts[2] in index.files.get(parts[1], {}):
                self._file(index.files[parts[1]][parts[2]], wanted, parts[2] in index.broken)
            else:
                self._answer(404, b"", "text/plain")

        def _file(self, content: bytes, wanted: str, gone: bool) -> None:  # noqa: FBT001
            if gone or not wanted or not index.ranges:
                self._answer(410 if gone else 200, content, "application/octet-stream")
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(content) - int(last))
            stop = int(last) + 1 if first and last else len(content)
            part = content[start:stop]
            place = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
            self._answer(206, part, "application/octet-stream", place)

        def _answer(self, status: int, body: bytes, kind: str, place: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if place:
                self.send_header("Content-Range", place)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with Serving(Handler) as server:
        index.url = f"http://127.0.0.1:{server.port}"
        yield index
