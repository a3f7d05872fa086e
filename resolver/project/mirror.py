"""A project as it would be with other files: its tool locks that, and nothing of it changes.

Links lead to everything else, in the directory above, too, where a project may name its neighbour.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path


def mirror(root: Path, files: Mapping[Path, bytes], into: Path) -> Path:
    """Make the directory above `root` in `into`, with `files`, all below `root`; return the root.

    Raises OSError.
    """
    _link(root.parent, into, files)
    return into / root.name


def _link(folder: Path, goal: Path, files: Mapping[Path, bytes]) -> None:
    goal.mkdir(exist_ok=True)
    own = {path.relative_to(folder).parts[0] for path in files if path.is_relative_to(folder)}
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for entry in os.scandir(folder):
            if entry.name not in own:
                (goal / entry.name).symlink_to(entry.path)
    for name in own:
        source = folder / name
        if source in files:
            (goal / name).write_bytes(files[source])
        else:
            _link(source, goal / name, files)
