"""Read the data that is installed with the program.

Shell: the only reader of `ortgpu_fix.data`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import zlib
from importlib.resources import files
from typing import Any

from . import companion_modules, matrix
from .errors import Error
from .texts import Language, Texts

COMPACT = "tables.json.gz"
MATRIX_TABLES = (
    "distributions",
    "drivers",
    "limits",
    "numpy",
    "nvidia",
    "onnxruntime",
    "toolkits",
)


def read(name: str) -> bytes:
    """Return a data file's bytes. Raises Error `matrix-invalid` where it cannot be read."""
    try:
        return (files("ortgpu_fix.data") / name).read_bytes()
    except OSError as error:
        raise Error("matrix-invalid", file=name, problem=error.strerror or error) from error


@functools.cache
def _compact() -> dict[str, dict[str, Any]]:
    """Return the compact form of all tables (`scripts/compact.py`), read once."""
    try:
        document: dict[str, dict[str, Any]] = json.loads(gzip.decompress(read(COMPACT)))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Error("matrix-invalid", file=COMPACT, problem=error) from error
    return document


def table(name: str) -> dict[str, Any]:
    """Return the table `name` of `data/`. Raises Error `matrix-invalid`."""
    try:
        found: dict[str, Any] = _compact()["tables"][name]
    except KeyError as error:
        raise Error("matrix-invalid", file=COMPACT, problem=f"no table {error}") from error
    return found


def load_matrix() -> matrix.Matrix:
    """Return the matrix; its digest covers the bytes of every table. Raises `matrix-invalid`."""
    tables = {name: table(name) for name in MATRIX_TABLES}
    digest = hashlib.sha256()
    for name in MATRIX_TABLES:
        digest.update(f"{name} {_compact()['digests'][name]}\n".encode())
    return matrix.parse(tables, f"sha256:{digest.hexdigest()}", companion_modules.read())


def load_texts(language: Language) -> Texts:
    """Return all texts, in `language`. Raises `matrix-invalid`."""
    return Texts(table=table("texts"), language=language)


def example_machine() -> object:
    """Return the facts document of the machine that is planned for where there is no GPU."""
    return json.loads(read("example_machine.json"))
