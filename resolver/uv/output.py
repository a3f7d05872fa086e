"""Parses the lock that uv writes, and names platforms as uv does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_wheel_filename

from ..errors import Error
from ..facts.markers import marker_holds
from ..facts.model import Facts
from ..facts.wheel_tags import libc_tag
from ..index.page import without_credentials
from ..plan.wheels import PYPI, Pinned, Wheel
from ..utils.foreign_text import plain_name
from ..utils.toml import tomllib
from .indexes import Indexes
from .project import Question, installed_versions

_GLIBC_MINORS = (17, 28, *range(31, 41))
"""The manylinux_2_… that `--python-platform` of uv has; 18 to 27 are taken as 17."""
_Entry = Mapping[str, object]


def parse_uv_output(
    text: str, folder: Path, question: Question, indexes: Indexes
) -> Iterator[Pinned]:
    """Parse the pylock.toml that uv wrote to `folder`; yield the wheels, those of the plan first.

    Of what is not in the plan, left out are releases required by URL, those that the target has in
    the same version, and those that the markers exclude. Raises ValueError, KeyError or TypeError
    where the text has another shape, or a release has no wheel that fits; Error `index-no-hash`
    where an index gives no SHA-256, `file-not-on-index` and `download-hash-mismatch` of a wheel of
    the plan.
    """
    packages = cast("list[_Entry]", tomllib.loads(text).get("packages", []))
    by_name: dict[str, _Entry] = {
        canonicalize_name(str(package["name"])): package for package in packages
    }
    ours = {wheel.name: wheel for wheel in question.wheels}
    for planned in question.wheels:
        yield _of_plan(planned, list(_files(by_name[planned.name], folder)), question)
    installed = installed_versions(question.target) if question.target else {}
    for name, package in by_name.items():
        if name in ours or "archive" in package:
            continue
        version, condition = str(package["version"]), package.get("marker")
        if installed.get(name) == version:
            continue
        if question.markers and condition and not marker_holds(str(condition), question.markers):
            continue
        fitting = _ranked(_files(package, folder), question)
        if not fitting:
            raise KeyError(f"no wheel of {name} {version}")
        for file, url, about in fitting:
            wheel = Wheel(
                name=name,
                version=version,
                index_url=_index_of(url, indexes),
                file=file,
                size=_size(about),
                sha256=_sha256(about, url, file),
            )
            yield Pinned(wheel=wheel, url=url)


def _files(package: _Entry, folder: Path) -> Iterator[tuple[str, str, _Entry]]:
    """Yield name, address and row of each wheel: `{url = "…", size = 9, hashes = {sha256 = "…"}}`.

    What lies in a folder of this machine comes first.
    """
    wheels = cast("list[_Entry]", package.get("wheels", []))
    named = [
        (str(entry.get("url") or (folder / str(entry["path"])).as_uri()), entry) for entry in wheels
    ]
    for url, entry in sorted(named, key=lambda one: not one[0].startswith("file:")):
        yield plain_name(unquote(urlsplit(url).path)), url, entry


def _ranked(
    files: Iterator[tuple[str, str, _Entry]], question: Question
) -> list[tuple[str, str, _Entry]]:
    """Return the files that fit, the best first, each once."""
    ranks = {tag: rank for rank, tag in enumerate(question.tags)}
    found: dict[str, tuple[int, tuple[str, str, _Entry]]] = {}
    for file, url, entry in files:
        fitting = [ranks[tag] for tag in parse_wheel_filename(file)[3] if tag in ranks]
        if fitting:
            found.setdefault(file, (min(fitting), (file, url, entry)))
    return [entry for _, entry in sorted(found.values(), key=lambda one: one[0])]


def _of_plan(wheel: Wheel, files: list[tuple[str, str, _Entry]], question: Question) -> Pinned:
    """Return a wheel of the plan with its address, and its file where the plan does not know it."""
    if not wheel.sha256:
        ranked = _ranked(iter(files), question)
        if not ranked:
            raise KeyError(f"no wheel of {wheel.name} {wheel.version}")
        file, url, entry = ranked[0]
        sha256 = _sha256(entry, url, file)
        return Pinned(wheel._replace(file=file, size=_size(entry), sha256=sha256), url)
    named = [(url, entry) for file, url, entry in files if file == wheel.file]
    named += [(url, entry) for _, url, entry in files if _hash_of(entry) == wheel.sha256]
    if not named:
        url = without_credentials(files[0][1]) if files else "-"
        raise Error("file-not-on-index", file=wheel.file, url=url)
    url, entry = named[0]
    if _hash_of(entry) not in {None, wheel.sha256}:
        raise Error("download-hash-mismatch", file=wheel.file, url=without_credentials(url))
    return Pinned(wheel, url)


def _size(entry: _Entry) -> int:
    size = entry.get("size", 0)
    return size if isinstance(size, int) else 0


def _hash_of(entry: _Entry) -> str | None:
    return cast("dict[str, str]", entry.get("hashes", {})).get("sha256")


def _sha256(entry: _Entry, url: str, file: str) -> str:
    sha256 = _hash_of(entry)
    if sha256 is None:
        page = without_credentials(url.rpartition("/")[0])
        raise Error("index-no-hash", file=file, url=page)
    return sha256


def _index_of(url: str, indexes: Indexes) -> str:
    """Return the index that a file comes from: the one behind, where it is on its server alone."""
    behind = indexes.behind
    if behind and _server(url) == _server(behind) != _server(indexes.default):
        return behind
    return PYPI


def _server(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


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


def is_taken_as_older(facts: Facts) -> bool:
    """Return whether uv has no word for the glibc of the machine, and takes an older one."""
    kind, (_, minor) = libc_tag(facts)
    linux = facts.platform.system == "linux" and kind == "glibc"
    return linux and not facts.python.free_threaded and _GLIBC_MINORS[0] < minor < _GLIBC_MINORS[1]
