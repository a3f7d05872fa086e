"""Read what is installed with the program: its data, and the modules that travel.

Shell: the only reader of `ortgpu_fix.data`.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from .. import data  # type: ignore[attr-defined] # it is beside this folder
from ..errors import Error
from ..messages.catalog import Language, Texts
from . import parse as matrix_parse
from .model import Matrix

DATA = Path(data.__file__).parent
COMPACT = "tables.jsonl"
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


def read(name: str) -> bytes:
    """Return a data file's bytes. Raises Error `matrix-invalid` where it cannot be read."""
    try:
        return (DATA / name).read_bytes()
    except OSError as error:
        raise Error("matrix-invalid", file=name, problem=error.strerror or error) from error


@functools.cache
def _compact() -> dict[str, tuple[str, bytes]]:
    """Return the hash and the line of each table in the compact form (`scripts/compact.py`)."""
    content = read(COMPACT)
    try:
        first, *lines = content.rstrip().split(b"\n")
        hashes: dict[str, str] = json.loads(first)
        rows = zip(hashes.items(), lines, strict=True)
        return {name: (digest, line) for (name, digest), line in rows}
    except ValueError as error:
        raise Error("matrix-invalid", file=COMPACT, problem=error) from error


def _entry(name: str) -> tuple[str, bytes]:
    try:
        return _compact()[name]
    except KeyError as error:
        raise Error("matrix-invalid", file=COMPACT, problem=f"no table {name}") from error


@functools.cache
def table(name: str) -> dict[str, Any]:
    """Return the table `name` of `data/`. Raises Error `matrix-invalid`."""
    try:
        found: dict[str, Any] = json.loads(_entry(name)[1])
    except ValueError as error:
        raise Error("matrix-invalid", file=COMPACT, problem=error) from error
    return found


def load_matrix(*, torch: bool = True) -> Matrix:
    """Return the matrix; its digest covers the bytes of every table. Raises `matrix-invalid`.

    `torch` False leaves out the large table of torch, which `add_torch` adds.
    """
    tables = {name: table(name) for name in MATRIX_TABLES}
    digest = hashlib.sha256()
    for name in (*MATRIX_TABLES, TORCH_TABLE):
        digest.update(f"{name} {_entry(name)[0]}\n".encode())
    known = matrix_parse.parse(tables, f"sha256:{digest.hexdigest()}", companion_modules())
    return add_torch(known) if torch else known


def add_torch(known: Matrix) -> Matrix:
    """Return `known` with the table of torch. Raises `matrix-invalid`."""
    return matrix_parse.with_torch(known, table(TORCH_TABLE))


def companion_modules() -> dict[str, str]:
    """Return the text of each module that travels by the name that it has in the wheel."""
    folder = Path(__file__).parents[1] / "companions" / "loader"
    return {name: (folder / name).read_bytes().decode() for name in TRAVEL}


def load_texts(language: Language) -> Texts:
    """Return all texts, in `language`. Raises `matrix-invalid`."""
    return Texts(table=table("texts"), language=language)


def example_machine() -> object:
    """Return the facts document of the machine that `--facts example` names.

    Raises Error `matrix-invalid`.
    """
    return json.loads(read("example_machine.json"))
