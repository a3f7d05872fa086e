"""Load the matrix from its tables, with the modules that travel in the wheel of `companions`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..data_files import load_table, table_hash
from . import parse as matrix_parse
from .model import Matrix

MATRIX_TABLES = (
    "distributions",
    "drivers",
    "limits",
    "msvc",
    "numpy",
    "nvidia",
    "onnxruntime",
    "toolkits",
)
TORCH_TABLE = "torch"
TRAVEL = ("__init__.py", "load.py")
"""The modules in the wheel of `companions`."""


def load_matrix(*, torch: bool = True) -> Matrix:
    """Return the matrix; its digest covers the bytes of every table. Raises `matrix-invalid`.

    `torch` False leaves out the large table of torch, which `add_torch` adds.
    """
    tables = {name: load_table(name) for name in MATRIX_TABLES}
    digest = hashlib.sha256()
    for name in (*MATRIX_TABLES, TORCH_TABLE):
        digest.update(f"{name} {table_hash(name)}\n".encode())
    known = matrix_parse.parse(tables, f"sha256:{digest.hexdigest()}", companion_modules())
    return add_torch(known) if torch else known


def add_torch(known: Matrix) -> Matrix:
    """Return `known` with the table of torch. Raises `matrix-invalid`."""
    return matrix_parse.with_torch(known, load_table(TORCH_TABLE))


def companion_modules() -> dict[str, str]:
    """Return the text of each module that travels by the name that it has in the wheel."""
    folder = Path(__file__).parents[1] / "companions" / "loader"
    return {name: (folder / name).read_bytes().decode() for name in TRAVEL}
