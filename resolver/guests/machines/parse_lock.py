"""Parse a lock: the distributions that it pins, their hashes, and the lines of both.

It parses every format that `ortgpu-fix lock` writes, and files of the same formats by other tools,
as far as they hold exact pins and SHA-256 hashes.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name

from ...errors import Error
from ...lock.machine_lines import read_machines
from ...requirements.lines import (
    files_named,
    logical_lines,
    options_of,
    wheel_at,
    without_options,
)
from ...utils.toml import tomllib
from ...versions import requirement
from .parsed_lock import Format, ParsedHash, ParsedLock, ParsedPin
from .unconditional import unconditional

_HASH = re.compile(r"--hash[ =]sha256:(\S+)")
_COMMENT = re.compile(r"(?:^|\s)#")
_PRINTED = re.compile(
    r"^RUN printf '%s\\n' \\\n((?: .*\\\n)+?) > (?=\S*requirements)\S*$", re.MULTILINE
)
"""As a Dockerfile of ours writes them: each line is one word of the shell."""
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_OF_VCS = re.compile(r"[a-z]+\+[^#]*/([A-Za-z0-9._-]+?)/?(?:\.git)?(?:@[^/#]*)?(?:#.*)?$")
"""A repository of a version control system is mostly called as what it builds.

Source: https://pip.pypa.io/en/stable/topics/vcs-support/
"""
_TEXT = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'""")
_NAME = re.compile(r'name = "([^"]*)"')
_MATRIX = re.compile(r"^# matrix: (\S+) (sha256:\S+)$", re.MULTILINE)

Included = Mapping[tuple[str, str], tuple[str, str]]
"""By a file and what its `-r` names: the name of that file from here, and its text."""


def read_lock(text: str, file: str, included: Included = MappingProxyType({})) -> ParsedLock:
    """Return what is in the lock `text` of `file`, and in what it has `included`.

    What an included file pins stands on the line that includes it.

    Raises Error `lock-unreadable` where it is not a lock.
    """
    lock_format: Format = "requirements"
    printed = _PRINTED.search(text)
    if printed is not None:
        lines = [
            "\n" * text.count("\n", 0, printed.start(1)),
            *printed[1].splitlines(keepends=True),
        ]
        lock_format = "dockerfile"
        pins = list(_requirements("".join(map(_unquoted, lines)), file, {}))
    else:
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError):  # also of a number that is too long for Python
            pins = list(_requirements(text, file, dict(included)))
        else:
            lock_format, pins = _toml(document, _Lines(text.splitlines()), file)
    exact = [pin for pin in pins if pin.exact]
    if not exact:
        raise Error("lock-unreadable", file=file, cause="it pins nothing")
    for pin in pins:
        _check_marker(pin, file)
    matrix = _MATRIX.search(text)
    return ParsedLock(
        format=lock_format,
        pins=tuple(exact),
        loose=tuple(pin for pin in pins if not pin.exact),
        matrix_date=matrix[1] if matrix else None,
        matrix_digest=matrix[2] if matrix else None,
        machines=tuple(read_machines(text)),
    )


def _unquoted(line: str) -> str:
    """Return a line that is a word of the shell, and a backslash."""
    try:
        return " ".join(shlex.split(line.removesuffix("\\\n"))) + "\n" if line.strip() else line
    except ValueError:  # a quote that does not end
        return "\n"


def _check_marker(pin: ParsedPin, file: str) -> None:
    try:
        Marker(pin.marker or "python_version > '3'")
    except (InvalidMarker, RecursionError) as error:
        cause = f"line {pin.line}: {str(error).partition(chr(10))[0]}"
        raise Error("lock-unreadable", file=file, cause=cause) from error


def _requirements(
    text: str, file: str, included: dict[tuple[str, str], tuple[str, str]]
) -> Iterator[ParsedPin]:
    """Yield what a requirements file pins; each of the `included` counts once, and is taken out."""
    for start, line in logical_lines(text):
        for name, _ in files_named(line):
            if (file, name) in included:
                inside, its_text = included.pop((file, name))
                for pin in _requirements(its_text, inside, included):
                    hashes = tuple(replace(entry, line=start) for entry in pin.hashes)
                    yield replace(pin, line=start, hashes=hashes)
        hashes = tuple(
            ParsedHash(sha256=sha256.lower(), line=number)
            for number, part in enumerate(line.splitlines(), start)
            for sha256 in _HASH.findall(_COMMENT.split(part, maxsplit=1)[0])
        )
        yield from _pin(without_options(line), start, hashes)
        for address in options_of(line).get("editable", ()):
            yield from _named_by(address, "", start)


def _pin(text: str, line: int, hashes: tuple[ParsedHash, ...] = ()) -> Iterator[ParsedPin]:
    """Yield what a requirement or the address of a wheel names, if anything."""
    if text.startswith("-"):
        return
    wanted = requirement(text)
    if wanted is not None and not wanted.url:
        exact = [spec.version for spec in wanted.specifier if spec.operator in {"==", "==="}]
        pinned = len(exact) == 1 and not exact[0].endswith(".*")
        yield ParsedPin(
            name=canonicalize_name(wanted.name),
            version=exact[0] if pinned else str(wanted.specifier),
            marker=str(wanted.marker or ""),
            hashes=hashes,
            line=line,
            placeholder=False,
            exact=pinned,
        )
        return
    address, _, marker = text.partition(" ; ")
    wheel = wheel_at(address)
    if wheel is None:
        yield from _named_by(address, marker.strip(), line, wanted.name if wanted else None)
        return
    name, version = wheel
    yield ParsedPin(
        name=name,
        version=version,
        marker=marker.strip(),
        hashes=hashes,
        line=line,
        placeholder=_is_bare(address.partition("#")[0]),
    )


def _named_by(address: str, marker: str, line: int, name: str | None = None) -> Iterator[ParsedPin]:
    """Yield what an address that is none of a wheel builds, where its name or `#egg=` says so."""
    named = _EGG.search(address) or _OF_VCS.match(address)
    name = name or (named and named[1])
    if name:
        yield ParsedPin(
            name=canonicalize_name(name),
            version="",
            marker=marker,
            hashes=(),
            line=line,
            placeholder=False,
            exact=False,
        )


def _is_bare(file: object) -> bool:
    """Return whether a file's name or address is of a wheel that every machine can install."""
    return str(file).endswith("-none-any.whl")


def _toml(
    document: Mapping[str, object], lines: _Lines, file: str
) -> tuple[Format, list[ParsedPin]]:
    packages = document.get("packages")
    try:
        if "lock-version" in document and isinstance(packages, list):
            return "pylock", list(_pylock(cast("list[dict[str, object]]", packages), lines))
        if isinstance(document.get("package"), list):
            return "project", list(_project(document, lines))
        return "uv", list(_uv(document, lines))
    except (AttributeError, KeyError, TypeError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise Error("lock-unreadable", file=file, cause=cause) from error


def _pylock(packages: Sequence[Mapping[str, object]], lines: _Lines) -> Iterator[ParsedPin]:
    blocks = list(zip(lines.packages, [*lines.packages[1:], lines.count], strict=False))
    if len(blocks) != len(packages):  # written as inline tables: the whole file is one block
        blocks = [(0, lines.count)] * len(packages)
    for package, block in zip(packages, blocks, strict=True):
        wheels = cast("list[dict[str, dict[str, str]]]", package.get("wheels") or [])
        sources = [package[key] for key in ("sdist", "archive") if key in package]
        files = [*wheels, *cast("list[dict[str, dict[str, str]]]", sources)]
        hashes = [file["hashes"]["sha256"].lower() for file in files]
        if "version" in package:
            name = str(package["name"])
            yield ParsedPin(
                name=canonicalize_name(name),
                version=str(package["version"]),
                marker=str(package.get("marker") or ""),
                hashes=tuple(
                    ParsedHash(sha256=sha256, line=lines.text(sha256, *block)) for sha256 in hashes
                ),
                line=lines.text(name, *block),
                placeholder=any(
                    _is_bare(wheel.get("url") or wheel.get("path")) for wheel in wheels
                ),
            )


def _project(document: Mapping[str, object], lines: _Lines) -> Iterator[ParsedPin]:
    """Yield what uv.lock, poetry.lock or pdm.lock pins; hashes are left to the tool.

    uv writes `resolution-markers`, a list; Poetry `markers`, and PDM `marker`, a text.
    """
    packages = cast("list[dict[str, object]]", document["package"])
    wanted = unconditional(packages)
    for package in packages:
        forks = cast("list[str]", package.get("resolution-markers") or [])
        marker = package.get("marker") or package.get("markers")
        written = marker if isinstance(marker, str) else " or ".join(f"({fork})" for fork in forks)
        files = cast("list[dict[str, object]]", package.get("wheels") or package.get("files") or [])
        if "version" in package:
            name = str(package["name"])
            yield ParsedPin(
                name=canonicalize_name(name),
                version=str(package["version"]),
                marker=written,
                hashes=(),
                line=lines.name(name),
                wanted=wanted.get(name),
                placeholder=any(_is_bare(value) for file in files for value in file.values()),
            )


def _uv(document: Mapping[str, object], lines: _Lines) -> Iterator[ParsedPin]:
    """Yield the pins among the dependencies of a project and of its groups."""
    project = cast("dict[str, list[str]]", document.get("project") or {})
    groups = cast("dict[str, list[object]]", document.get("dependency-groups") or {})
    lists: list[Sequence[object]] = [project.get("dependencies", []), *groups.values()]
    for at, texts in enumerate(lists):
        for text in texts:
            if isinstance(text, str):
                for pin in _pin(text, lines.text(text)):
                    yield pin if at == 0 else replace(pin, wanted=None)


class _Lines:
    """The lines of a TOML document, by the texts that stand in them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.count = len(lines)
        self.packages = [at for at, line in enumerate(lines) if line.strip() == "[[packages]]"]
        self._of_text: dict[str, list[int]] = {}
        self._of_name: dict[str, int] = {}
        for at, line in enumerate(lines):
            for one, other in _TEXT.findall(line):
                self._of_text.setdefault((one or other).lower(), []).append(at)
            named = _NAME.match(line)
            if named is not None:
                self._of_name.setdefault(named[1].lower(), at)

    def text(self, wanted: str, start: int = 0, end: int | None = None) -> int:
        """Return the number of the first line in a block with `wanted`; the block's, if none."""
        found = self._of_text.get(wanted.lower(), [])
        at = bisect_left(found, start)
        return found[at] + 1 if at < len(found) and (end is None or found[at] < end) else start + 1

    def name(self, name: str) -> int:
        """Return the number of the line that names a package; 1, if none."""
        return self._of_name.get(name.lower(), 0) + 1
