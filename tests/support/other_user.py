"""Another user than the one that runs the tests, for whom the folders of the tests are closed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOMEBODY = 12345
"""A user who is not the one that runs the tests."""
with_others = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can be another user, too"
)


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Be this user, as far as files and the program can tell."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def closed(folder: Path) -> Iterator[Path]:
    """Be somebody who may not look into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    with acting_as(SOMEBODY):
        yield folder
