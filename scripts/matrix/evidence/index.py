"""Project pages of a package index: PEP 503 (HTML) and PEP 691 (JSON).

Mirrors serve HTML only, pypi.org serves both; what a plan needs is in either.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from ortgpu_fix.evidence.errors import EvidenceError
from ortgpu_fix.evidence.wheels import IndexWheel, wheel_of

JSON_TYPE = "application/vnd.pypi.simple.v1+json"


def parse_page(text: str, url: str, content_type: str) -> list[IndexWheel]:
    """Return the wheels on a project page for `PLATFORMS` and `any`, yanked ones left out.

    `url` is the page's address: links on it are relative to that. Source distributions,
    unreadable names and other platforms are skipped; an unreadable page is an `EvidenceError`.
    """
    entries = _json_entries(text) if "json" in content_type else _html_entries(text)
    wheels = []
    for href, name, sha256, yanked in entries:
        address, _ = urldefrag(urljoin(url, href))
        wheel = None if yanked else wheel_of(name, address, sha256)
        if wheel is not None:
            wheels.append(wheel)
    return sorted(wheels, key=lambda wheel: (wheel.version, wheel.platform, wheel.file))


class _Links(HTMLParser):
    """Collects the anchors of a PEP 503 page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs))


def _html_entries(text: str) -> list[tuple[str, str, str, bool]]:
    parser = _Links()
    parser.feed(text)
    entries = []
    for link in parser.links:
        try:
            address, fragment = urldefrag(link.get("href") or "")
        except ValueError:
            continue
        sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        name = unquote(address.rsplit("/", 1)[-1])
        entries.append((address, name, sha256, "data-yanked" in link))
    return entries


def _json_entries(text: str) -> list[tuple[str, str, str, bool]]:
    try:
        page: Any = json.loads(text)
        return [
            (
                str(file["url"]),
                str(file["filename"]),
                str(file.get("hashes", {}).get("sha256", "")),
                bool(file.get("yanked", False)),
            )
            for file in page["files"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise EvidenceError(f"a JSON project page could not be read: {error!r}") from error
