"""The real matrix as it was when plans were recorded, without the releases that came later."""

from __future__ import annotations

import functools
import json

from odd import RECORDINGS
from packaging.version import Version
from tables import tables

from ortgpu_fix.matrix import parse as matrix_parse
from ortgpu_fix.matrix.model import Matrix
from support.cut_matrix import cut_tables


@functools.cache
def cut_matrix() -> Matrix:
    """Return the matrix without what is newer than in `recordings/plans/last.json`."""
    last: dict[str, str] = json.loads((RECORDINGS / "plans/last.json").read_text("utf-8"))

    def later(distribution: str, version: str) -> bool:
        return distribution not in last or Version(version) > Version(last[distribution])

    cut = {**tables(), **cut_tables(tables(), later)}
    return matrix_parse.with_torch(matrix_parse.parse(cut, "", {}), cut["torch"])
