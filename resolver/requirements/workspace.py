"""The workspace of uv that a project is a member of.

uv reads overrides in the root alone, and its lock lies there
(https://docs.astral.sh/uv/concepts/projects/workspaces/).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..utils.files import is_file, read_bounded
from ..utils.toml import tomllib
from .rewrite_pyproject import Document, list_at, table_at

_WORKSPACE = ("tool", "uv", "workspace")


def find_root(path: Path) -> Path | None:
    """Return the pyproject.toml of the workspace that the project of `path` is a member of."""
    folder = path.resolve().parent
    for above in folder.parents:
        root = above / "pyproject.toml"
        if not is_file(root):
            continue
        try:
            document = tomllib.loads(read_bounded(root).decode())
        except (OSError, ValueError):  # nor does uv get further
            return None
        if table_at(document, _WORKSPACE):
            inside = PurePosixPath("/", folder.relative_to(above).as_posix())
            member = _has(document, "members", inside) and not _has(document, "exclude", inside)
            return root if member else None
    return None


def _has(document: Document, key: str, folder: PurePosixPath) -> bool:
    patterns = list_at(document, (*_WORKSPACE, key))
    return any(isinstance(row, str) and folder.match(f"/{row}") for row in patterns)
