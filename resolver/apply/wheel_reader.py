"""Reads the zip file of a wheel."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from pathlib import Path

from ..errors import Error
from .wheel_contents import Member, WheelContents, info_folder, wheel_contents

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


def read_wheel_contents(path: Path) -> WheelContents:
    """Return what is in the wheel at `path`.

    Raises Error `wheel-escapes`, `wheel-odd`, `wheel-huge` or `wheel-broken`.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = [_member(info) for info in file.infolist()]
            info = info_folder(path.name, members)
            texts = {}
            for name in _TEXTS:
                member = f"{info}/{name}"
                if member in file.namelist():
                    if file.getinfo(member).file_size > _MAX_TEXT:
                        raise Error("wheel-huge", file=path.name, size=_MAX_TEXT)
                    texts[name] = file.read(member).decode("utf-8", errors="replace")
    except (OSError, *_UNREADABLE) as error:
        # EINVAL: an offset before the beginning of the file
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise Error("wheel-broken", file=path.name, part="zip") from error
    return wheel_contents(path.name, path.stat().st_size, members, texts)


def _member(info: zipfile.ZipInfo) -> Member:
    return Member(
        name=info.orig_filename,
        size=info.file_size,
        mode=info.external_attr >> 16,
        locked=bool(info.flag_bits & 1) or info.compress_type not in _PACKINGS,
    )
