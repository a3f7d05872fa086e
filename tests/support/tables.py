"""The tables of `data/` as they are written, for the tests that only read them."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parents[2] / "data"


@functools.cache
def tables() -> dict[str, Any]:
    """Return every table of `data/`, by its name, for all who only read; parsing takes a while."""
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in DATA.glob("*.toml")}


def table(path: Path) -> dict[str, Any]:
    """Return one table of the tests' own."""
    return tomllib.loads(path.read_text("utf-8"))


def pages_of_the_matrix() -> dict[str, list[tuple[str, str]]]:
    """Return the files that the matrix knows, as an index would list them, by project."""
    pages: dict[str, list[tuple[str, str]]] = {}
    all_of_it = tables()
    rows = [
        *(
            ("onnxruntime-gpu", row)
            for one in all_of_it["onnxruntime"]["build"]
            for row in one["wheels"]
        ),
        *(
            (one["name"], row)
            for one in all_of_it["nvidia"]["distribution"]
            for row in one["releases"]
        ),
        *(("torch", row) for one in all_of_it["torch"]["torch"] for row in one["wheels"]),
        *((one["name"], row) for one in all_of_it["torch"]["companion"] for row in one["wheels"]),
        *(("msvc-runtime", row) for row in all_of_it["msvc"]["wheel"]),
    ]
    for name, row in rows:
        pages.setdefault(name, []).append((row["file"], row["sha256"]))
    return pages
