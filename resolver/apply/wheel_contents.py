"""What is in a wheel, or why it must not be unpacked: read of its zip file, or of parts of it."""

from __future__ import annotations

import configparser
import csv
import errno
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ..errors import Error
from ..evidence.metadata import fields
from ..facts.target import STATE_FOLDER
from ..versions import version as parse_version

_SCHEMES = frozenset({"purelib", "platlib", "scripts", "headers", "data"})
_MOST = 32 << 30
"""Most bytes that one wheel may unpack to."""
_RATIO = 400
"""Most unpacked bytes per byte of the wheel; machine code packs to 1/3, zeros pack to 1/1000."""
_UNLISTED = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})
_UNSAFE = re.compile(r"[\x00-\x1f\\]")
_TEXTS = ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
_MAX_TEXT = 64 << 20
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises for a damaged file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the zip."""

    name: str
    size: int
    """Bytes, unpacked, as the zip declares."""
    mode: int
    """The Unix mode in the zip; without a kind of file where there is none."""
    locked: bool = False
    """Encrypted, or compressed in a way that not every installer reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelContents:
    """What whoever installs a wheel has to know of it."""

    name: str
    """Canonical."""
    version: str
    requires: tuple[str, ...]
    size: int
    """Bytes, unpacked."""


def read_wheel_contents(path: Path) -> WheelContents:
    """Return what is in the wheel at `path`; raises OSError, and as `read_contents`."""
    with path.open("rb") as file:
        return read_contents(file, path.name, path.stat().st_size)


def read_contents(opened: IO[bytes], name: str, size: int) -> WheelContents:
    """Return what is in the wheel `name` of `size` bytes; of a file elsewhere parts are read.

    Raises Error `wheel-escapes`, `wheel-odd`, `wheel-huge` or `wheel-broken`; and OSError.
    """
    try:
        with zipfile.ZipFile(opened) as file:
            members = [_member(info) for info in file.infolist()]
            info = info_folder(name, members)
            texts = {}
            for text in _TEXTS:
                member = f"{info}/{text}"
                if member in file.namelist():
                    if file.getinfo(member).file_size > _MAX_TEXT:
                        raise Error("wheel-huge", file=name, size=_MAX_TEXT)
                    texts[text] = file.read(member).decode("utf-8", errors="replace")
    except (OSError, *_UNREADABLE) as error:
        # EINVAL: an offset before the beginning of the file
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise Error("wheel-broken", file=name, part="zip") from error
    return wheel_contents(name, size, members, texts)


def _member(info: zipfile.ZipInfo) -> Member:
    return Member(
        name=info.orig_filename,
        size=info.file_size,
        mode=info.external_attr >> 16,
        locked=bool(info.flag_bits & 1) or info.compress_type not in _PACKINGS,
    )


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
    """Return what is in the wheel `file` of `size` bytes.

    `texts` holds METADATA, WHEEL, RECORD and, where there is one, entry_points.txt, by their names.
    Raises Error `wheel-escapes` where a file would be written outside the environment, `wheel-odd`
    where a member is not a regular file or occurs twice, `wheel-huge` where it unpacks to too many
    bytes, and `wheel-broken` where the metadata do not fit the members.
    """
    info = info_folder(file, members)
    _check_members(file, size, members)
    _check_record(file, info, members, texts.get("RECORD", ""))
    metadata = texts.get("METADATA", "")
    names, versions, requires = fields(metadata, "Name", "Version", "Requires-Dist")
    name, version = "".join(names[:1]), "".join(versions[:1])
    stem, _, number = info.removesuffix(".dist-info").partition("-")
    if canonicalize_name(name) != canonicalize_name(stem) or (
        parse_version(version) != parse_version(number)
    ):
        raise Error("wheel-broken", file=file, part="METADATA")
    (formats,) = fields(texts.get("WHEEL", ""), "Wheel-Version")
    if not "".join(formats[:1]).startswith("1."):
        raise Error("wheel-broken", file=file, part="WHEEL")
    for member in members:
        _check_destination(file, member.name, info)
    check_entry_points(texts.get("entry_points.txt", ""), file)
    return WheelContents(
        name=canonicalize_name(name),
        version=version,
        requires=tuple(requires),
        size=sum(member.size for member in members),
    )


def check_entry_points(text: str, file: str) -> None:
    """Refuse scripts of `entry_points.txt` that would be written elsewhere.

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
    for name in (name for section in sections for name in parser.options(section)):
        if not name or "/" in name or name in {".", ".."} or _UNSAFE.search(name):
            raise Error("wheel-escapes", file=file, member=name)


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


def _check_record(file: str, info: str, members: Sequence[Member], text: str) -> None:
    try:
        listed = {line[0] for line in csv.reader(text.splitlines(), strict=True) if line}
    except csv.Error as error:
        raise Error("wheel-broken", file=file, part="RECORD") from error
    files = set(_files(members))
    if f"{info}/RECORD" not in files:
        raise Error("wheel-broken", file=file, part="RECORD")
    wrong = (files ^ listed) - {f"{info}/{name}" for name in _UNLISTED}
    if wrong:
        raise Error("wheel-broken", file=file, part=min(wrong))


def _files(members: Sequence[Member]) -> list[str]:
    return [member.name for member in members if not member.name.endswith("/")]


def _parents(name: str) -> set[str]:
    parts = name.split("/")
    return {"/".join(parts[:end]) for end in range(1, len(parts))}


def _check_destination(file: str, name: str, info: str) -> None:
    if STATE_FOLDER in name.casefold().split("/"):
        raise Error("wheel-escapes", file=file, member=name)
    data = f"{info.removesuffix('.dist-info')}.data/"
    if name.startswith(data) and not name.endswith("/"):
        scheme, _, rest = name.removeprefix(data).partition("/")
        if scheme not in _SCHEMES or not rest:
            raise Error("wheel-escapes", file=file, member=name)
