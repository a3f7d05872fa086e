"""Read the data that is installed with the program.

Shell: the only reader of `ortgpu_fix.data`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.resources import files
from typing import Any

from . import matrix
from .errors import Error
from .texts import Language, Texts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


def table(name: str) -> dict[str, Any]:
    """Return a TOML data file, parsed. Raises Error `matrix-invalid`."""
    return _parse(name, read(name))


def _parse(name: str, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Error("matrix-invalid", file=name, problem=error) from error


def load_matrix() -> matrix.Matrix:
    """Return the matrix; its digest covers the bytes of every table. Raises `matrix-invalid`."""
    digest = hashlib.sha256()
    tables: dict[str, dict[str, Any]] = {}
    for name in MATRIX_TABLES:
        content = read(f"{name}.toml")
        digest.update(f"{name} {len(content)}\n".encode() + content)
        tables[name] = _parse(f"{name}.toml", content)
    return matrix.parse(tables, f"sha256:{digest.hexdigest()}")


def load_texts(language: Language) -> Texts:
    """Return all texts, in `language`. Raises `matrix-invalid`."""
    return Texts(table=table("texts.toml"), language=language)


def example_machine() -> object:
    """Return the facts document of the machine that is planned for where there is no GPU."""
    return json.loads(read("example_machine.json"))
