"""The kernel of a notebook in whose cell a command was typed: it may have another Python."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MODULES = {b"ipykernel_launcher", b"ipykernel"}
"""What a kernel is started with, by Jupyter and by editors: `PYTHON -m ipykernel_launcher -f …`."""
_PARENT = re.compile(rb"^PPid:\s*(\d+)", re.MULTILINE)


def kernel_python(pid: int, processes: Path = Path("/proc")) -> Path | None:
    """Return the Python of the kernel that the process `pid` descends from, as it was started.

    None where it descends from none, or that cannot be seen: Windows has no `/proc`.
    """
    while pid > 1:
        try:
            words = (processes / str(pid) / "cmdline").read_bytes().split(b"\0")
            parent = _PARENT.search((processes / str(pid) / "status").read_bytes())
        except OSError:
            return None
        if not _MODULES.isdisjoint(words):
            python = Path(os.fsdecode(words[0]))
            return python if python.is_absolute() else None
        pid = int(parent[1]) if parent else 0
    return None
