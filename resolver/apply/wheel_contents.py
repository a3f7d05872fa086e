"""What is in a wheel, and whether it may be unpacked.

The list of a zip's members and the texts of its metadata go in; the files that an engine
will write come out, or the reason for which it must not.
"""

from __future__ import annotations

import configparser
import csv
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ..errors import Error

Scheme = Literal["purelib", "platlib", "scripts", "headers", "data"]
_SCHEMES: tuple[Scheme, ...] = ("purelib", "platlib", "scripts", "headers", "data")
_MOST = 32 << 30
"""Bytes that one wheel may unpack to."""
_RATIO = 400
"""How many times its own size it may unpack to; machine code packs to a third, zeros to 1/1000."""
_UNLISTED = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})
_UNSAFE = re.compile(r"[\x00-\x1f\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the zip."""

    name: str
    size: int
    """Bytes, unpacked, as declared."""
    mode: int
    """The Unix mode that the zip gives it; 0 where it gives none."""
    locked: bool = False
    """Encrypted, or packed in a way that not every engine reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelContents:
    """What installing a wheel writes."""

    name: str
    """Canonical."""
    version: str
    requires: tuple[str, ...]
    info: str
    """The dist-info folder."""
    files: tuple[tuple[Scheme, str], ...]
    """Every file, as the folder that it goes to and the path below that."""
    folders: tuple[tuple[Scheme, str], ...]
    """Every folder without a file: uv makes those, too."""
    size: int
    """Bytes, unpacked."""


def info_folder(file: str, members: Sequence[Member]) -> str:
    """Return the name of the dist-info folder of the wheel `file`.

    Raises Error `wheel-broken` where no folder, or more than one, fits the name of the file.
    """
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise Error("wheel-broken", file=file, part="-") from error
    folders = {
        member.name.partition("/")[0]
        for member in members
        if member.name.partition("/")[0].endswith(".dist-info")
    }
    if len(folders) != 1:
        raise Error("wheel-broken", file=file, part=".dist-info")
    folder = folders.pop()
    stem, _, number = folder.removesuffix(".dist-info").partition("-")
    try:
        fits = canonicalize_name(stem) == name and Version(number) == version
    except InvalidVersion:
        fits = False
    if not fits:
        raise Error("wheel-broken", file=file, part=folder)
    return folder


def wheel_contents(
    file: str,
    size: int,
    members: Sequence[Member],
    texts: dict[str, str],
) -> WheelContents:
    """Return what installing the wheel `file` of `size` bytes writes.

    `texts` holds METADATA, WHEEL, RECORD and, where there is one, entry_points.txt, by their names.
    Raises Error `wheel-escapes` where a member would leave the environment, `wheel-odd` where one
    is no plain file or is there twice, `wheel-huge` where it cannot be what it says, and
    `wheel-broken` where the metadata do not fit the members.
    """
    info = info_folder(file, members)
    _check_members(file, size, members)
    _check_record(file, info, members, texts.get("RECORD", ""))
    fields = _headers(texts.get("METADATA", ""))
    name, version = fields.get("name", [""])[0], fields.get("version", [""])[0]
    stem, _, number = info.removesuffix(".dist-info").partition("-")
    if canonicalize_name(name) != canonicalize_name(stem) or not _same_version(version, number):
        raise Error("wheel-broken", file=file, part="METADATA")
    wheel = _headers(texts.get("WHEEL", ""))
    if not wheel.get("wheel-version", [""])[0].startswith("1."):
        raise Error("wheel-broken", file=file, part="WHEEL")
    pure = wheel.get("root-is-purelib", [""])[0].lower() == "true"
    files = [_goes_to(file, name, info, pure=pure) for name in _files(members)]
    empty = [_goes_to(file, name, info, pure=pure) for name in _empty(members, info)]
    scripts = entry_points(texts.get("entry_points.txt", ""), file)
    return WheelContents(
        name=canonicalize_name(name),
        version=version,
        requires=tuple(fields.get("requires-dist", [])),
        info=info,
        files=(*files, *(("scripts", script) for script in scripts)),
        folders=tuple(empty),
        size=sum(member.size for member in members),
    )


def entry_points(text: str, file: str) -> tuple[str, ...]:
    """Return the names of the scripts that installing makes from `entry_points.txt`.

    Raises Error `wheel-broken` where the text cannot be read, `wheel-escapes` where a name is no
    file name.
    """
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Error("wheel-broken", file=file, part="entry_points.txt") from error
    sections = [name for name in ("console_scripts", "gui_scripts") if parser.has_section(name)]
    names = tuple(name for section in sections for name in parser.options(section))
    for name in names:
        if not name or "/" in name or name in {".", ".."} or _UNSAFE.search(name):
            raise Error("wheel-escapes", file=file, member=name)
    return names


def _check_members(file: str, size: int, members: Sequence[Member]) -> None:
    files: set[str] = set()
    folders: set[str] = set()
    for member in members:
        parts = member.name.rstrip("/").split("/")
        if (
            _UNSAFE.search(member.name)
            or member.name.startswith("/")
            or ":" in parts[0]
            or any(part in {"", ".", ".."} for part in parts)
        ):
            raise Error("wheel-escapes", file=file, member=member.name)
        kind = stat.S_IFMT(member.mode)
        is_folder = member.name.endswith("/")
        if kind not in {0, stat.S_IFDIR if is_folder else stat.S_IFREG} or member.locked:
            raise Error("wheel-odd", file=file, member=member.name)
        if member.name in files:
            raise Error("wheel-odd", file=file, member=member.name)
        if not is_folder:
            files.add(member.name)
        folders |= {"/".join(parts[:end]) for end in range(1, len(parts) + is_folder)}
    both = files & folders
    if both:
        raise Error("wheel-odd", file=file, member=min(both))
    total = sum(member.size for member in members)
    if total > min(_MOST, (size + (1 << 20)) * _RATIO):
        raise Error("wheel-huge", file=file, size=total)


def _check_record(file: str, info: str, members: Sequence[Member], text: str) -> None:
    try:
        listed = {row[0] for row in csv.reader(text.splitlines(), strict=True) if row}
    except csv.Error as error:
        raise Error("wheel-broken", file=file, part="RECORD") from error
    there = set(_files(members))
    free = {f"{info}/{name}" for name in _UNLISTED}
    if f"{info}/RECORD" not in there:
        raise Error("wheel-broken", file=file, part="RECORD")
    odd = (there - free) ^ (listed - free)
    if odd:
        raise Error("wheel-broken", file=file, part=min(odd))


def _files(members: Sequence[Member]) -> list[str]:
    return [member.name for member in members if not member.name.endswith("/")]


def _empty(members: Sequence[Member], info: str) -> list[str]:
    """Return the folders among the members that hold no file, without the slash."""
    stem = info.removesuffix(".dist-info")
    schemes = {f"{stem}.data", *(f"{stem}.data/{scheme}" for scheme in _SCHEMES)}
    full = {folder for name in _files(members) for folder in _above(name)}
    names = [member.name.rstrip("/") for member in members if member.name.endswith("/")]
    return [name for name in names if name not in full | schemes]


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _goes_to(file: str, name: str, info: str, *, pure: bool) -> tuple[Scheme, str]:
    """Return the folder that the member goes to, and its path below that."""
    root: Scheme = "purelib" if pure else "platlib"
    data = f"{info.removesuffix('.dist-info')}.data/"
    if not name.startswith(data):
        return root, name
    scheme, _, rest = name.removeprefix(data).partition("/")
    for known in _SCHEMES:
        if scheme == known and rest:
            return known, rest
    raise Error("wheel-escapes", file=file, member=name)


def _headers(text: str) -> dict[str, list[str]]:
    """Return the fields at the head of METADATA or WHEEL, their names in lower case."""
    fields: dict[str, list[str]] = {}
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    for line in re.sub(r"\r?\n[ \t]+", " ", head).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), []).append(value.strip())
    return fields


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False
