"""Project pages of a package index: PEP 503 (HTML) and PEP 691 (JSON).

Mirrors serve HTML only, pypi.org serves both; what a plan needs is in either.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from packaging.utils import BuildTag, InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from .errors import EvidenceError

PLATFORMS = ("linux_x86_64", "linux_aarch64", "windows_x86_64")
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")
_LEGACY = {"manylinux2014": (2, 17), "manylinux2010": (2, 12), "manylinux1": (2, 5)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """One wheel on an index, as its project page and its file name describe it."""

    file: str
    """File name, for example `nvidia_cublas-13.1.0.3-py3-none-win_amd64.whl`."""
    url: str
    """Absolute address without fragment."""
    sha256: str
    """Hash that the page gives, lower-case hexadecimal; empty where it gives none."""
    version: Version
    """Release, from the file name."""
    python: str
    """ABI tag (`cp313t`), or the Python tag (`py3`) where the ABI is `none`."""
    platform: str
    """One of `PLATFORMS`, or `any`."""
    glibc: str | None
    """Lowest glibc of its manylinux tags, `2.27`; None on Windows and for plain linux tags."""
    build: BuildTag = ()
    """Its build number: of one release and tag the highest is what pip and uv take."""


def parse_page(text: str, url: str, content_type: str) -> list[Wheel]:
    """Return the wheels on a project page for `PLATFORMS` and `any`, yanked ones left out.

    `url` is the page's address: links on it are relative to that. Source distributions,
    unreadable names and other platforms are skipped; an unreadable page is an `EvidenceError`.
    """
    entries = _json_entries(text) if "json" in content_type else _html_entries(text)
    wheels = []
    for href, name, sha256, yanked in entries:
        address, _ = urldefrag(urljoin(url, href))
        wheel = None if yanked else _wheel(name, address, sha256)
        if wheel is not None:
            wheels.append(wheel)
    return sorted(wheels, key=lambda wheel: (wheel.version, wheel.platform, wheel.file))


def _wheel(name: str, url: str, sha256: str) -> Wheel | None:
    try:
        _, version, build, tags = parse_wheel_filename(name)
    except (InvalidWheelFilename, ValueError):
        return None
    python, abi, platform_tag = name[: -len(".whl")].split("-")[-3:]
    platform = _platform(platform_tag)
    if platform is None or not tags:
        return None
    return Wheel(
        file=name,
        url=url,
        sha256=sha256,
        version=version,
        python=python if abi == "none" else abi,
        platform=platform,
        glibc=_glibc(platform_tag),
        build=build,
    )


def _platform(tag: str) -> str | None:
    if tag in {"win_amd64", "any"}:
        return "any" if tag == "any" else "windows_x86_64"
    for machine in ("x86_64", "aarch64"):
        parts = tag.split(".")
        if all(part.endswith(machine) and "linux" in part for part in parts):
            return None if "musllinux" in tag else f"linux_{machine}"
    return None


def _glibc(tag: str) -> str | None:
    floors = [(int(major), int(minor)) for major, minor in _GLIBC.findall(tag)]
    floors += [floor for name, floor in _LEGACY.items() if f"{name}_" in tag]
    return "{}.{}".format(*min(floors)) if floors else None


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
