"""Rows that `matrix --update` read from an index: their file, and the tables with them.

The file has a JSON document on each line, dated and hashed: one for each index that was read. What
the shipped matrix knows by itself is not taken from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ..errors import Error
from .model import DEFAULT_INDEX
from .torch import TomlTable

SCHEMA = 1
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ADDED_TABLES = {
    "onnxruntime": ("build",),
    "nvidia": ("distribution",),
    "toolkits": ("toolkit",),
    "torch": ("torch", "companion"),
}
"""The tables that grow, and the kinds of rows in each."""


class Additions(NamedTuple):
    """Rows that were read from an index."""

    read: str
    """The day on which the index was read: `2026-11-22`."""
    index_url: str
    """The index, without credentials."""
    tables: Mapping[str, TomlTable]
    digest: str

    @property
    def alone(self) -> bool:
        """Tell whether the rows are builds that come from this index and from no other."""
        return any("index_url" in row for row in self.tables["onnxruntime"]["build"])

    @property
    def releases(self) -> tuple[str, ...]:
        """Return the releases: `onnxruntime-gpu 1.32.0`, each once, sorted."""
        names = {f"onnxruntime-gpu {row['version']}" for row in self.tables["onnxruntime"]["build"]}
        names |= {f"cuda-toolkit {row['version']}" for row in self.tables["toolkits"]["toolkit"]}
        names |= {f"torch {row['version']}" for row in self.tables["torch"]["torch"]}
        names |= {f"{row['name']} {row['version']}" for row in self.tables["torch"]["companion"]}
        names |= {
            f"{row['name']} {release['version']}"
            for row in self.tables["nvidia"]["distribution"]
            for release in row["releases"]
        }
        return tuple(sorted(names))


def additions_json(
    read: str, index_url: str, tables: Mapping[str, Mapping[str, Sequence[object]]]
) -> dict[str, object]:
    """Return the document of rows, ready for `json.dumps`; `parse_additions` reads it back."""
    return {
        "schema": SCHEMA,
        "read": read,
        "index": index_url,
        "digest": _digest(read, index_url, tables),
        "tables": tables,
    }


def parse_all(text: bytes, file: object) -> tuple[Additions, ...]:
    """Read the documents in `text`, one on each line. Raises Error `matrix-file-invalid`."""
    return tuple(parse_additions(line, file) for line in text.splitlines() or (b"",))


def parse_additions(text: bytes, file: object) -> Additions:
    """Read the document in `text`. Raises Error `matrix-file-invalid` naming `file`."""
    try:
        document: Any = json.loads(text)
        read, index_url = str(document["read"]), str(document["index"])
        tables = {
            name: {kind: list(document["tables"][name][kind]) for kind in kinds}
            for name, kinds in _ADDED_TABLES.items()
        }
        digest = _digest(read, index_url, tables)
        whole = (SCHEMA, digest) == (document["schema"], document["digest"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Error("matrix-file-invalid", file=file, problem=repr(error)) from error
    if not whole or not _DATE.fullmatch(read):
        problem = "its content does not have its digest"
        raise Error("matrix-file-invalid", file=file, problem=problem)
    return Additions(read=read, index_url=index_url, tables=tables, digest=digest)


def _digest(read: str, index_url: str, tables: object) -> str:
    text = json.dumps([read, index_url, tables], sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def with_additions(name: str, table: TomlTable, added: Sequence[Additions]) -> TomlTable:
    """Return the table `name` of the shipped matrix with the rows that it lacks."""
    if name not in _ADDED_TABLES or not added:
        return table
    grown = dict(table)
    for kind in _ADDED_TABLES[name]:
        rows: list[dict[str, Any]] = list(table[kind])
        for addition in added:
            new = cast("list[dict[str, Any]]", addition.tables[name][kind])
            rows = _with_distributions(rows, new) if name == "nvidia" else _with_rows(rows, new)
        grown[kind] = rows
    return grown


def _with_rows(rows: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = {_identity(row) for row in rows}
    return [*rows, *(row for row in new if _identity(row) not in known)]


def _identity(row: Mapping[str, Any]) -> tuple[object, ...]:
    index = row.get("index_url", DEFAULT_INDEX)
    return row.get("name"), row["version"], row.get("platform"), index


def _with_distributions(
    rows: list[dict[str, Any]], new: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the distributions with their new releases, and the files and code of those."""
    by_name = {row["name"]: row for row in rows}
    for row in new:
        known = by_name.get(row["name"], {"releases": []})
        there = {_identity(release) for release in known["releases"]}
        fresh = [release for release in row["releases"] if _identity(release) not in there]
        versions = {(release["version"], release["platform"]) for release in fresh}
        by_name[row["name"]] = {
            **row,
            **known,
            "releases": [*known["releases"], *fresh],
            "files": [
                *known.get("files", ()),
                *(
                    block
                    for block in row["files"]
                    if (block["versions"][0], block["platform"]) in versions
                ),
            ],
            "code": [
                *known.get("code", ()),
                *(
                    block
                    for block in row["code"]
                    if (block["first"], block["platform"]) in versions
                ),
            ],
        }
    return list(by_name.values())
