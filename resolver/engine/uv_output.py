"""Parses the lock that uv prints, and names platforms as uv does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_wheel_filename

from ..facts.markers import marker_holds
from ..facts.model import Facts
from ..facts.wheel_tags import libc_tag
from ..index.folder import sha256_at
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.foreign_text import plain_name
from ..utils.toml import tomllib

_GLIBC_MINORS = (17, 28, *range(31, 41))
"""The manylinux_2_… that `--python-platform` of uv 0.8 and newer has; 18 to 27 are taken as 17."""


def parse_uv_output(
    text: str,
    folder: Path,
    fitting: Sequence[Tag],
    installed: Mapping[str, str],
    markers: Mapping[str, str] | None,
) -> Iterator[Pinned]:
    """Parse the pylock.toml that uv prints; yield the `fitting` wheels, best first per release.

    Paths in it are relative to `folder`. Left out are releases required by URL, those `installed`
    in the same version, and those that `markers` exclude. Raises ValueError, KeyError or TypeError
    where the text has another shape, or a release has no wheel that fits, and Error `index-no-hash`
    where an index gives no SHA-256; and OSError.
    """
    ranks = {tag: rank for rank, tag in enumerate(fitting)}
    for package in cast("list[dict[str, object]]", tomllib.loads(text).get("packages", [])):
        if "archive" in package:
            continue
        name, version = canonicalize_name(str(package["name"])), str(package["version"])
        condition = package.get("marker")
        if installed.get(name) == version:
            continue
        if markers and condition and not marker_holds(str(condition), markers):
            continue
        ranked: list[tuple[int, Pinned]] = []
        for row in cast("list[dict[str, object]]", package.get("wheels", [])):
            url = str(row.get("url") or (folder / str(row["path"])).as_uri())
            file = plain_name(unquote(urlsplit(url).path))
            ranks_here = [ranks[tag] for tag in parse_wheel_filename(file)[3] if tag in ranks]
            if ranks_here:
                ranked.append((min(ranks_here), _pinned(name, version, row, url, file)))
        if not ranked:
            raise KeyError(f"no wheel of {name} {version}")
        yield from (wheel for _, wheel in sorted(ranked, key=lambda row: row[0]))


def _pinned(name: str, version: str, row: Mapping[str, object], url: str, file: str) -> Pinned:
    """Return a wheel of uv's list: `{url = "…", size = 1024, hashes = {sha256 = "…"}}`.

    Up to 0.11 uv gives no hash of a file of this machine, `hashes = {}`.
    """
    size = row.get("size", 0)
    told = cast("dict[str, str]", row["hashes"]).get("sha256")
    wheel = Wheel(
        name=name,
        version=version,
        index_url=PYPI,
        file=file,
        size=size if isinstance(size, int) else 0,
        sha256=sha256_at(url, told, file=file, page=url.rpartition("/")[0]),
    )
    return Pinned(wheel=wheel, url=url)


def uv_platform(facts: Facts) -> str:
    """Return uv's `--python-platform` for the machine of `facts`."""
    machine = facts.platform.machine
    if facts.platform.system == "windows":
        return f"{machine}-pc-windows-msvc"
    kind, (major, minor) = libc_tag(facts)
    if kind == "musl":
        return f"{machine}-unknown-linux-musl"
    known = max((number for number in _GLIBC_MINORS if number <= minor), default=_GLIBC_MINORS[0])
    return f"{machine}-manylinux_{major}_{known}"
