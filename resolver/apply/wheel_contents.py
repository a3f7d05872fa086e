"""What installing a wheel writes, from its zip members and metadata, or why it must not."""

from __future__ import annotations

import base64
import binascii
import configparser
import contextlib
import csv
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ..errors import Error
from ..facts.target import STATE_FOLDER
from ..versions import version as parse_version

Scheme = Literal["purelib", "platlib", "scripts", "headers", "data"]
_SCHEMES: tuple[Scheme, ...] = ("purelib", "platlib", "scripts", "headers", "data")
_MOST = 32 << 30
"""Most bytes that one wheel may unpack to."""
_RATIO = 400
"""Most unpacked bytes per byte of the wheel; machine code packs to 1/3, zeros pack to 1/1000."""
_UNLISTED = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})
_UNSAFE = re.compile(r"[\x00-\x1f\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the zip."""

    name: str
    size: int
    """Bytes, unpacked, as the zip declares."""
    mode: int
    """The Unix mode in the zip; 0 where there is none."""
    locked: bool = False
    """Encrypted, or compressed in a way that not every engine reads."""


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
    """Every file: the folder that it is written to, and the path below that."""
    sizes: tuple[int, ...]
    """Bytes of each of `files`; -1 for scripts, whose first line engines rewrite, and RECORD."""
    hashes: tuple[str, ...]
    """SHA-256 of each of `files` as RECORD has it, in hexadecimal; empty where it has none."""
    folders: tuple[tuple[Scheme, str], ...]
    """Every folder without a file: uv makes those, too."""
    scripts: tuple[str, ...]
    """Names of the entry points: files in the folder of scripts, on Windows with `.exe`."""
    size: int
    """Bytes, unpacked."""


def info_folder(file: str, members: Sequence[Member]) -> str:
    """Return the name of the dist-info folder of the wheel `file`.

    Raises Error `wheel-broken` where not exactly one folder fits the name of the file.
    """
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise Error("wheel-broken", file=file, part="-") from error
    folders = {member.name.partition("/")[0] for member in members}
    infos = [folder for folder in folders if folder.endswith(".dist-info")]
    if len(infos) != 1:
        raise Error("wheel-broken", file=file, part=".dist-info")
    (folder,) = infos
    stem, _, number = folder.removesuffix(".dist-info").partition("-")
    if canonicalize_name(stem) != name or parse_version(number) != version:
        raise Error("wheel-broken", file=file, part=folder)
    return folder


def wheel_contents(
    file: str, size: int, members: Sequence[Member], texts: dict[str, str]
) -> WheelContents:
    """Return what installing the wheel `file` of `size` bytes writes.

    `texts` holds METADATA, WHEEL, RECORD and, where there is one, entry_points.txt, by their names.
    Raises Error `wheel-escapes` where a file would be written outside the environment, `wheel-odd`
    where a member is not a regular file or occurs twice, `wheel-huge` where it unpacks to too many
    bytes, and `wheel-broken` where the metadata do not fit the members.
    """
    info = info_folder(file, members)
    _check_members(file, size, members)
    hashes = _hashes(_check_record(file, info, members, texts.get("RECORD", "")))
    fields = _headers(texts.get("METADATA", ""))
    name, version = fields.get("name", [""])[0], fields.get("version", [""])[0]
    stem, _, number = info.removesuffix(".dist-info").partition("-")
    if canonicalize_name(name) != canonicalize_name(stem) or (
        parse_version(version) != parse_version(number)
    ):
        raise Error("wheel-broken", file=file, part="METADATA")
    wheel = _headers(texts.get("WHEEL", ""))
    if not wheel.get("wheel-version", [""])[0].startswith("1."):
        raise Error("wheel-broken", file=file, part="WHEEL")
    pure = wheel.get("root-is-purelib", [""])[0].lower() == "true"
    files = [_destination(file, path, info, pure=pure) for path in _files(members)]
    folders = [_destination(file, path, info, pure=pure) for path in _empty(members, info)]
    scripts = entry_points(texts.get("entry_points.txt", ""), file)
    sizes = {member.name: member.size for member in members}
    return WheelContents(
        name=canonicalize_name(name),
        version=version,
        requires=requirements_in(texts.get("METADATA", "")),
        info=info,
        files=tuple(files),
        sizes=tuple(
            -1 if path == f"{info}/RECORD" or scheme == "scripts" else sizes[name]
            for name, (scheme, path) in zip(_files(members), files, strict=True)
        ),
        hashes=tuple(
            "" if scheme == "scripts" else hashes.get(name, "")
            for name, (scheme, _) in zip(_files(members), files, strict=True)
        ),
        scripts=scripts,
        folders=tuple(folders),
        size=sum(member.size for member in members),
    )


def requirements_in(metadata: str) -> tuple[str, ...]:
    """Return the `Requires-Dist` lines of the text of a METADATA file."""
    return tuple(_headers(metadata).get("requires-dist", []))


def entry_points(text: str, file: str) -> tuple[str, ...]:
    """Return the names of the scripts that `entry_points.txt` defines.

    Raises Error `wheel-broken` where the text cannot be parsed, `wheel-escapes` where a name is not
    a file name.
    """
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Error("wheel-broken", file=file, part="entry_points.txt") from error
    sections = [part for part in ("console_scripts", "gui_scripts") if parser.has_section(part)]
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
        folders |= _parents(member.name)
    if files & folders:
        raise Error("wheel-odd", file=file, member=min(files & folders))
    total = sum(member.size for member in members)
    if total > min(_MOST, (size + (1 << 20)) * _RATIO):
        raise Error("wheel-huge", file=file, size=total)


def _check_record(
    file: str, info: str, members: Sequence[Member], text: str
) -> dict[str, list[str]]:
    """Return the rows of RECORD by the path in them."""
    try:
        listed = {row[0]: row for row in csv.reader(text.splitlines(), strict=True) if row}
    except csv.Error as error:
        raise Error("wheel-broken", file=file, part="RECORD") from error
    files = set(_files(members))
    if f"{info}/RECORD" not in files:
        raise Error("wheel-broken", file=file, part="RECORD")
    wrong = (files ^ listed.keys()) - {f"{info}/{name}" for name in _UNLISTED}
    if wrong:
        raise Error("wheel-broken", file=file, part=min(wrong))
    return listed


def _hashes(rows: dict[str, list[str]]) -> dict[str, str]:
    """Return the SHA-256 of each path in hexadecimal, where RECORD has one.

    Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    found = {}
    for path, row in rows.items():
        kind, _, digest = row[1].partition("=") if len(row) > 1 else ("", "", "")
        with contextlib.suppress(binascii.Error, ValueError):
            if kind == "sha256":
                found[path] = base64.urlsafe_b64decode(f"{digest}=").hex()
    return found


def _files(members: Sequence[Member]) -> list[str]:
    return [member.name for member in members if not member.name.endswith("/")]


def _empty(members: Sequence[Member], info: str) -> list[str]:
    """Return the folders among the members without a file in them, without the slash."""
    stem = info.removesuffix(".dist-info")
    schemes = {f"{stem}.data", *(f"{stem}.data/{scheme}" for scheme in _SCHEMES)}
    used = schemes.union(*map(_parents, _files(members)))
    names = [member.name.rstrip("/") for member in members if member.name.endswith("/")]
    return [name for name in names if name not in used]


def _parents(name: str) -> set[str]:
    parts = name.split("/")
    return {"/".join(parts[:end]) for end in range(1, len(parts))}


def _destination(file: str, name: str, info: str, *, pure: bool) -> tuple[Scheme, str]:
    root: Scheme = "purelib" if pure else "platlib"
    if STATE_FOLDER in name.casefold().split("/"):
        raise Error("wheel-escapes", file=file, member=name)
    data = f"{info.removesuffix('.dist-info')}.data/"
    if not name.startswith(data):
        return root, name
    scheme, _, rest = name.removeprefix(data).partition("/")
    for known in _SCHEMES:
        if scheme == known and rest:
            return known, rest
    raise Error("wheel-escapes", file=file, member=name)


def _headers(text: str) -> dict[str, list[str]]:
    """Return the fields of METADATA or WHEEL, their names in lower case."""
    fields: dict[str, list[str]] = {}
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    for line in re.sub(r"\r?\n[ \t]+", " ", head).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), []).append(value.strip())
    return fields
