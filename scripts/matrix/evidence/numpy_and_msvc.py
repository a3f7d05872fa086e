"""`data/numpy.toml` and `data/msvc.toml`: wheels of which a plan needs no more than where they are.

Releases of onnxruntime-gpu below 1.19 break with numpy 2: of numpy, the newest 1.x wheel for each
Python and platform. Of Microsoft's Visual C++ runtime, the wheels for each Python on Windows; the
oldest onnxruntime-gpu of the matrix was built with version 14.29.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from ortgpu_fix.evidence.wheels import PLATFORMS
from ortgpu_fix.guests.update.spread import each
from ortgpu_fix.utils.toml_writer import table

if TYPE_CHECKING:
    from ortgpu_fix.evidence.wheels import IndexWheel
    from ortgpu_fix.guests.update.reader import Reader

PYTHONS = ("cp37m", "cp38", "cp39", "cp310", "cp311", "cp312")
_SECOND = Version("2.0.dev0")
_OLDEST_MSVC = Version("14.29")
_MSVC_PYTHON = re.compile(r"cp3(8|9|\d\d)t?")


def numpy_tables(reader: Reader, threads: int) -> list[str]:
    """Return a `[[wheel]]` table for each Python and platform, sorted by both."""
    newest: dict[tuple[str, str], IndexWheel] = {}
    for wheel in reader.wheels("numpy"):
        key = (wheel.python, wheel.platform)
        if wheel.version.is_prerelease or wheel.version >= _SECOND:
            continue
        if key not in newest or _rank(wheel) > _rank(newest[key]):
            newest[key] = wheel
    chosen = [
        newest[python, platform]
        for python in PYTHONS
        for platform in PLATFORMS
        if (python, platform) in newest
    ]
    sizes = each(lambda wheel: reader.contents(wheel).size, chosen, threads)
    return [_row(wheel, size) for wheel, size in zip(chosen, sizes, strict=True)]


def msvc_tables(reader: Reader, threads: int) -> list[str]:
    """Return a `[[wheel]]` table for each release, Python and platform, sorted by them."""
    chosen = [
        wheel
        for wheel in reader.wheels("msvc-runtime")
        if wheel.platform.startswith("windows_")
        and wheel.version >= _OLDEST_MSVC
        and _MSVC_PYTHON.fullmatch(wheel.python)
    ]
    place = PLATFORMS.index
    chosen.sort(key=lambda row: (row.version, len(row.python), row.python, place(row.platform)))
    sizes = each(reader.size, chosen, threads)
    return [_row(wheel, size) for wheel, size in zip(chosen, sizes, strict=True)]


def _row(wheel: IndexWheel, size: int) -> str:
    """Return the `[[wheel]]` table of a wheel for one Python and platform."""
    return table(
        "wheel",
        {
            "version": str(wheel.version),
            "python": wheel.python,
            "platform": wheel.platform,
            "glibc": wheel.glibc,
            "size": size,
            "sha256": wheel.sha256,
            "file": wheel.file,
        },
    )


def _rank(wheel: IndexWheel) -> tuple[Version, tuple[int, ...]]:
    """Order wheels of one Python and platform: newer release, then older glibc."""
    return wheel.version, tuple(-int(part) for part in (wheel.glibc or "0").split("."))
