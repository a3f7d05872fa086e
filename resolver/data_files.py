"""Read the data files of the program: bytes and parsed tables. Only here is `data/` read."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from . import data  # type: ignore[attr-defined] # its folder is `data/`
from .errors import Error

DATA = Path(data.__file__).parent
COMPILED = "compiled.jsonl"


def read_data_file(name: str) -> bytes:
    """Return a data file's bytes. Raises Error `matrix-invalid` where it cannot be read."""
    try:
        return (DATA / name).read_bytes()
    except OSError as error:
        raise Error("matrix-invalid", file=name, problem=error.strerror or error) from error


@functools.cache
def compiled_tables() -> dict[str, tuple[str, bytes]]:
    """Return the hash and the line of each table, made by `scripts/matrix/compile_tables.py`."""
    content = read_data_file(COMPILED)
    try:
        first, *lines = filter(None, content.split(b"\n"))
        rows = zip(json.loads(first).items(), lines, strict=True)
        return {name: (digest, line) for (name, digest), line in rows}
    except ValueError as error:
        raise Error("matrix-invalid", file=COMPILED, problem=error) from error


def table_hash(name: str) -> str:
    """Return the SHA-256 of the table `name` in `data/`. Raises `matrix-invalid`."""
    return _entry(name)[0]


def _entry(name: str) -> tuple[str, bytes]:
    try:
        return compiled_tables()[name]
    except KeyError as error:
        raise Error("matrix-invalid", file=COMPILED, problem=f"no table {name}") from error


@functools.cache
def load_table(name: str) -> dict[str, Any]:
    """Return the table `name` of `data/`. Raises Error `matrix-invalid`."""
    try:
        table: dict[str, Any] = json.loads(_entry(name)[1])
    except ValueError as error:
        raise Error("matrix-invalid", file=COMPILED, problem=error) from error
    return table


def example_machine() -> object:
    """Return the facts document of `--facts example`. Raises Error `matrix-invalid`."""
    return json.loads(read_data_file("example_machine.json"))
