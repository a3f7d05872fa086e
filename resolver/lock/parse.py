"""Read a lock back: which distributions it pins, with which hashes, and on which lines.

Every format that `ortgpu-fix lock` writes, and what others write in the same formats, as far
as exact pins and SHA-256 hashes are in it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from packaging.markers import InvalidMarker, Marker
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ..errors import Error
from ..versions import requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Format = Literal["requirements", "pylock", "uv", "dockerfile"]

_HASH = re.compile(r"--hash[ =]sha256:(\S+)")
_OPTION = re.compile(r"\s--[a-z].*$")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_HEREDOC = re.compile(r"^COPY <<'(\w+)' \S*requirements\S*$")
_MATRIX = re.compile(r"^# matrix: (\S+) (sha256:\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedHash:
    """A SHA-256 in a lock."""

    sha256: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPin:
    """A distribution in a lock, at one version."""

    name: str
    """Canonical."""
    version: str
    marker: str
    """Where it is installed; empty: everywhere."""
    hashes: tuple[ParsedHash, ...]
    line: int
    """The line that names it, from 1."""

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Tell whether it is installed where markers see `environment`."""
        return not self.marker or Marker(self.marker).evaluate(dict(environment))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLock:
    """What a lock holds."""

    format: Format
    pins: tuple[ParsedPin, ...]
    matrix_date: str | None
    """Of the matrix that it was made with; None where it does not say."""
    matrix_digest: str | None


def read_lock(text: str, file: str) -> ParsedLock:
    """Return what is in the lock `text`; `file` is for messages.

    Raises Error `lock-unreadable` for what is none.
    """
    lines = text.splitlines()
    form: Format = "requirements"
    heredoc = next((row for row in enumerate(lines) if _HEREDOC.match(row[1])), None)
    if heredoc is not None:
        form, found = "dockerfile", _heredoc(lines, *heredoc)
    else:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            found = list(_requirements(lines))
        else:
            form, found = _toml(document, lines, file)
    if not found:
        raise Error("lock-unreadable", file=file, cause="it pins nothing")
    for pin in found:
        _check_marker(pin, file)
    made_with = _MATRIX.search(text)
    return ParsedLock(
        format=form,
        pins=tuple(found),
        matrix_date=made_with[1] if made_with else None,
        matrix_digest=made_with[2] if made_with else None,
    )


def _check_marker(pin: ParsedPin, file: str) -> None:
    try:
        Marker(pin.marker or "python_version > '3'")
    except InvalidMarker as error:
        cause = f"line {pin.line}: {str(error).partition(chr(10))[0]}"
        raise Error("lock-unreadable", file=file, cause=cause) from error


def _heredoc(lines: Sequence[str], at: int, command: str) -> list[ParsedPin]:
    """Return the requirements that a Dockerfile writes into its build."""
    match = _HEREDOC.match(command)
    end = match[1] if match else ""
    block = list(lines[at + 1 :])
    if end in block:
        block = block[: block.index(end)]
    return [_moved(pin, at + 1) for pin in _requirements(block)]


def _moved(pin: ParsedPin, by: int) -> ParsedPin:
    hashes = tuple(ParsedHash(sha256=one.sha256, line=one.line + by) for one in pin.hashes)
    return replace(pin, hashes=hashes, line=pin.line + by)


def _requirements(lines: Sequence[str]) -> Iterator[ParsedPin]:
    logical: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        plain = _COMMENT.sub("", line).rstrip()
        logical.append((number, plain.removesuffix("\\")))
        if not plain.endswith("\\"):
            pin = _pin(logical)
            if pin is not None:
                yield pin
            logical = []
    pin = _pin(logical)
    if pin is not None:
        yield pin


def _pin(logical: Sequence[tuple[int, str]]) -> ParsedPin | None:
    """Return the pin of one requirement with its continuation lines; None for anything else."""
    hashes = tuple(
        ParsedHash(sha256=sha256.lower(), line=number)
        for number, text in logical
        for sha256 in _HASH.findall(text)
    )
    whole = _OPTION.sub("", " ".join(text for _, text in logical)).strip()
    named = _named(whole)
    if named is None:
        return None
    name, version, marker = named
    line = next(number for number, text in logical if text.strip())
    return ParsedPin(name=name, version=version, marker=marker, hashes=hashes, line=line)


def _named(text: str) -> tuple[str, str, str] | None:
    """Return name, version and marker of a pinned requirement or of the address of a wheel."""
    if not text or text.startswith("-"):
        return None
    wanted = requirement(text)
    if wanted is None or wanted.url:
        address, _, marker = text.partition(" ; ")
        file = re.split(r"[/\\]", address.partition("#")[0])[-1]
        try:
            name, version, _, _ = parse_wheel_filename(file.replace("%2B", "+"))
        except InvalidWheelFilename:
            return None
        return name, str(version), marker.strip()
    exact = [spec.version for spec in wanted.specifier if spec.operator in {"==", "==="}]
    if len(exact) != 1 or exact[0].endswith(".*"):
        return None
    return canonicalize_name(wanted.name), exact[0], str(wanted.marker or "")


def _toml(
    document: Mapping[str, object], lines: Sequence[str], file: str
) -> tuple[Format, list[ParsedPin]]:
    packages = document.get("packages")
    try:
        if "lock-version" in document and isinstance(packages, list):
            return "pylock", _pylock(cast("list[dict[str, object]]", packages), lines)
        return "uv", list(_uv(document, lines))
    except (AttributeError, KeyError, TypeError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise Error("lock-unreadable", file=file, cause=cause) from error


def _pylock(packages: Sequence[Mapping[str, object]], lines: Sequence[str]) -> list[ParsedPin]:
    starts = [at for at, line in enumerate(lines) if line.strip() == "[[packages]]"]
    if len(starts) != len(packages):  # written as inline tables: the whole file is one block
        starts = [0] * len(packages)
    ends = [*starts[1:], len(lines)] if any(starts) else [len(lines)] * len(packages)
    pins: list[ParsedPin] = []
    for package, start, end in zip(packages, starts, ends, strict=True):
        wheels = cast("list[dict[str, dict[str, str]]]", package.get("wheels") or [])
        hashes = [wheel["hashes"]["sha256"].lower() for wheel in wheels]
        if "version" in package:
            name = str(package["name"])
            pins.append(
                ParsedPin(
                    name=canonicalize_name(name),
                    version=str(package["version"]),
                    marker=str(package.get("marker") or ""),
                    hashes=tuple(
                        ParsedHash(sha256=one, line=_line(lines, one, start, end)) for one in hashes
                    ),
                    line=_line(lines, f'"{name}"', start, end),
                )
            )
    return pins


def _uv(document: Mapping[str, object], lines: Sequence[str]) -> Iterator[ParsedPin]:
    """Yield the pins among the dependencies of a project and of its groups."""
    project = cast("dict[str, list[str]]", document.get("project") or {})
    groups = cast("dict[str, list[object]]", document.get("dependency-groups") or {})
    every: list[object] = [*project.get("dependencies", [])]
    for group in groups.values():
        every += group
    for text in every:
        named = _named(text) if isinstance(text, str) else None
        if named is not None:
            name, version, marker = named
            line = _line(lines, str(text), 0, len(lines))
            yield ParsedPin(name=name, version=version, marker=marker, hashes=(), line=line)


def _line(lines: Sequence[str], wanted: str, start: int, end: int) -> int:
    """Return the number of the first line in a block that holds `wanted`; the block's, if none."""
    for at in range(start, end):
        if wanted.lower() in lines[at].lower():
            return at + 1
    return start + 1
