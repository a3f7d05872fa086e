"""Parse a project page of a package index: HTML (PEP 503) or JSON (PEP 691)."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import cast
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from ..errors import Cause, Error, cause
from ..utils.foreign_text import plain_name

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, "
    "application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
)
"""JSON is preferred, because it has the sizes."""

_JSON_TYPES = frozenset({"application/vnd.pypi.simple.v1+json", "application/json"})
_HTML_TYPES = frozenset({"application/vnd.pypi.simple.v1+html", "text/html", ""})
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file that an index offers."""

    name: str
    url: str
    """Its absolute address, without fragment; may contain the credentials of the index."""
    sha256: str | None = None
    """None where the page does not have it."""
    size: int | None = None
    """Bytes; None where the page does not have it."""
    yanked: bool = False
    requires_python: str | None = None


def parse_index_page(content_type: str, text: str, base_url: str) -> tuple[IndexFile, ...]:
    """Return the files that the page `text`, read from `base_url`, offers.

    Raises Error `index-page-unreadable` where it is no project page: another content type, JSON of
    another shape, or HTML without files (an error page served with status 200).
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _JSON_TYPES:
        return _parse_json(text, base_url)
    if kind in _HTML_TYPES:
        return _parse_html(text, base_url)
    raise _unreadable(base_url, cause("page-type", kind=kind))


def without_credentials(url: str) -> str:
    """Return `url` without user name, password, query and fragment, so that it can be shown."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", ""))


def _unreadable(base_url: str, problem: Cause) -> Error:
    return Error("index-page-unreadable", url=without_credentials(base_url), problem=problem)


def _parse_json(text: str, base_url: str) -> tuple[IndexFile, ...]:
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(base_url, cause("page-not-json")) from error
    listed = (
        cast("dict[str, object]", document).get("files") if isinstance(document, dict) else None
    )
    if not isinstance(listed, list):
        raise _unreadable(base_url, cause("page-without-list"))
    files = (_json_file(file, base_url) for file in cast("list[object]", listed))
    return tuple(file for file in files if file.name)


def _json_file(file: object, base_url: str) -> IndexFile:
    if not isinstance(file, dict):
        raise _unreadable(base_url, cause("page-file-odd"))
    table = cast("dict[str, object]", file)
    name, url = table.get("filename"), table.get("url")
    if not isinstance(name, str) or not isinstance(url, str):
        raise _unreadable(base_url, cause("page-file-nameless"))
    try:
        address = _without_fragment(urljoin(base_url, url))
    except ValueError as error:
        raise _unreadable(base_url, cause("page-file-unaddressed")) from error
    hashes, size, python = table.get("hashes"), table.get("size"), table.get("requires-python")
    sha256 = cast("dict[str, object]", hashes).get("sha256") if isinstance(hashes, dict) else None
    return IndexFile(
        name=plain_name(name),
        url=address,
        sha256=_sha256(sha256),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
        yanked=table.get("yanked", False) is not False,
        requires_python=python if isinstance(python, str) else None,
    )


def _parse_html(text: str, base_url: str) -> tuple[IndexFile, ...]:
    page = _Links(base_url)
    try:
        page.feed(text)
    except AssertionError as error:  # `<![<![`: the parser of Python gives up so
        raise _unreadable(base_url, cause("page-not-html")) from error
    if not page.files and not page.is_index:
        raise _unreadable(base_url, cause("page-without-files"))
    return tuple(page.files)


class _Links(HTMLParser):
    """The links of an HTML page that lead to files of packages."""

    def __init__(self, base_url: str) -> None:
        super().__init__()
        self._base = base_url
        self.files: list[IndexFile] = []
        self.is_index = False
        """The page declares that it belongs to an index, so it may be empty."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        href = values.get("href", "")
        if tag == "base":
            with contextlib.suppress(ValueError):
                self._base = urljoin(self._base, href)
        if tag == "meta" and values.get("name", "").lower() == "pypi:repository-version":
            self.is_index = True
        if tag == "a":
            self._add(href, values)

    def _add(self, href: str, values: dict[str, str]) -> None:
        try:
            url = urljoin(self._base, href.strip())
            parts = urlsplit(url)
        except ValueError:  # `http://[`
            return
        name = plain_name(unquote(parts.path))
        if not name.endswith((".whl", ".tar.gz", ".zip")):
            return
        kind, _, digest = parts.fragment.partition("=")
        self.files.append(
            IndexFile(
                name=name,
                url=_without_fragment(url),
                sha256=_sha256(digest if kind == "sha256" else None),
                yanked="data-yanked" in values,
                requires_python=values.get("data-requires-python"),
            )
        )


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


def _sha256(value: object) -> str | None:
    digest = value.lower() if isinstance(value, str) else ""
    return digest if _SHA256.fullmatch(digest) else None
