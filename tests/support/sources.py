"""The modules of the program as syntax trees, for tests that read them: parsing takes a while."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the tree of a module, for all who only read it."""
    return ast.parse(path.read_text())
