"""What a change does to the disk, in its order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

Steps = list[tuple[str, str]]
"""`flush` or `move`, and the path."""


def note_steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return what is flushed to the disk and what is moved from now on. Reads /proc."""
    found: Steps = []
    flush, replace, rename = os.fsync, os.replace, os.rename

    def noted(descriptor: int) -> None:
        found.append(("flush", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        flush(descriptor)

    def moved(one: str, other: str, move: Callable[[str, str], None]) -> None:
        found.append(("move", one))
        move(one, other)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", partial(moved, move=replace))
    monkeypatch.setattr(os, "rename", partial(moved, move=rename))
    return found


def flushed(steps: Sequence[tuple[str, str]]) -> set[str]:
    """Return the paths that were flushed."""
    return {path for step, path in steps if step == "flush"}
