"""Load the matrix from its tables, with the modules of the loader in `companions/loader`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ..data_files import load_table, table_hash
from . import parse as matrix_parse
from .additions import Additions, with_additions
from .model import AddedRows, Matrix
from .torch import TomlTable

MATRIX_TABLES = (
    *("applications", "consumers", "distributions", "drivers", "floors", "limits", "msvc"),
    *("numpy", "nvidia", "onnxruntime", "plugins", "toolkits"),
)
TORCH_TABLE = "torch"
LOADER_MODULES = ("__init__.py", "__main__.py", "demand.py", "load.py", "lost.py", "service.py")


_used: list[Additions] = []
"""The rows that the user's own file and `--matrix` add, for the whole run of the program."""


def use_additions(added: Sequence[Additions]) -> None:
    """Let every matrix that is loaded from now on have these rows too."""
    _used[:] = added


def used_additions() -> tuple[Additions, ...]:
    """Return the rows of `use_additions`."""
    return tuple(_used)


def matrix_table(name: str) -> TomlTable:
    """Return the table `name` of `data/`, with the rows of `use_additions`."""
    return with_additions(name, load_table(name), _used)


def load_matrix(*, torch: bool = True) -> Matrix:
    """Return the matrix; its digest covers the bytes of every table. Raises `matrix-invalid`.

    `torch` False leaves out the large table of torch, which `add_torch` adds.
    """
    tables = {name: matrix_table(name) for name in MATRIX_TABLES}
    digest = hashlib.sha256()
    for name in (*MATRIX_TABLES, TORCH_TABLE):
        digest.update(f"{name} {table_hash(name)}\n".encode())
    for added in _used:
        digest.update(f"{added.read} {added.digest}\n".encode())
    matrix = matrix_parse.parse(tables, f"sha256:{digest.hexdigest()}", companion_modules())
    matrix = matrix._replace(
        added=tuple(AddedRows(one.read, one.index_url, one.releases, one.alone) for one in _used)
    )
    return add_torch(matrix) if torch else matrix


def add_torch(matrix: Matrix) -> Matrix:
    """Return `matrix` with the table of torch. Raises `matrix-invalid`."""
    return matrix_parse.with_torch(matrix, matrix_table(TORCH_TABLE))


def companion_modules() -> dict[str, str]:
    """Return the text of each module of the loader, by its name in the wheel."""
    folder = Path(__file__).parents[1] / "companions" / "loader"
    return {name: (folder / name).read_bytes().decode() for name in LOADER_MODULES}
