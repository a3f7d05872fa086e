"""`data/msvc.toml`: the wheels of Microsoft's Visual C++ runtime, for each Python on Windows.

The oldest onnxruntime-gpu of the matrix was built with version 14.29.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from ortgpu_fix.evidence.spread import each

from .numpy_wheels import row

if TYPE_CHECKING:
    from ortgpu_fix.evidence.reader import Reader

NAME = "msvc-runtime"
_OLDEST = Version("14.29")
_PYTHON = re.compile(r"cp3(8|9|\d\d)t?")


def tables(reader: Reader, threads: int) -> list[str]:
    """Return a `[[wheel]]` table for each release and Python, sorted by both."""
    chosen = [
        wheel
        for wheel in reader.wheels(NAME)
        if wheel.platform == "windows_x86_64"
        and wheel.version >= _OLDEST
        and _PYTHON.fullmatch(wheel.python)
    ]
    chosen.sort(key=lambda wheel: (wheel.version, len(wheel.python), wheel.python))
    sizes = each(reader.size, chosen, threads)
    return [row(wheel, size) for wheel, size in zip(chosen, sizes, strict=True)]
