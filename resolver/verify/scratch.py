"""The folder for what a child that runs a model leaves behind: profiles, files of libraries."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import Error
from ..utils.signals import signals_ignored


@contextmanager
def scratch_folder(target: str | Path) -> Iterator[str]:
    """Name a new folder, and remove it however this ends; the child that gets the name makes it.

    So it never exists without somebody to remove it: where we are killed, the child learns so from
    its standard input. Raises Error `verify-not-started` (of the interpreter `target`) where there
    is no place for temporary files.
    """
    try:
        folder = Path(tempfile.gettempdir(), f"ortgpu-fix-{secrets.token_hex(8)}")
    except OSError as problem:
        raise Error("verify-not-started", python=target, problem=problem) from problem
    try:
        yield str(folder)
    finally:
        with signals_ignored():
            shutil.rmtree(folder, ignore_errors=True)
