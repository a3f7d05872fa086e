"""Rows that `matrix --update` read from an index: their file, and the tables with them.

The file has a JSON document on each line, dated and hashed: one for each index that was read. What
the shipped matrix knows by itself is not taken from it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

from ..errors import Error
from .fields import TEXT, read_rows, row_reader
from .model import DEFAULT_INDEX
from .parse import RowReaders
from .torch import TomlTable

SCHEMA = 1
LARGEST = 1 << 26
"""The most bytes of a file of rows; all that an index has today are 2 MB."""
_SINCE = frozenset({"plugins"})
"""Those that files which were written before lack."""


_LONGEST_PROBLEM = 300


@functools.cache
def _readers() -> Mapping[str, Mapping[str, Callable[[Any], object]]]:
    """Return the tables that grow, and what reads the rows of each kind in them."""
    rows = RowReaders(forms=True)
    return {
        "onnxruntime": {"build": rows.build},
        "nvidia": {"distribution": rows.distribution},
        "toolkits": {"toolkit": rows.toolkit},
        "torch": {"torch": rows.torch, "companion": rows.companion},
        "plugins": {"plugin": rows.plugin, "wheel": rows.onnxruntime},
    }


def _is_day(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return time.strftime("%Y-%m-%d", time.strptime(text, "%Y-%m-%d")) == text
    return False


class _Head(NamedTuple):
    """What a document says of its rows."""

    read: Annotated[str, _is_day]
    index_url: TEXT


_HEAD = row_reader(_Head, forms=True)


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
        """Return whether the rows are builds that come from this index and from no other."""
        return any("index_url" in row for row in self.tables["onnxruntime"]["build"])

    @property
    def releases(self) -> tuple[str, ...]:
        """Return the releases: `onnxruntime-gpu 1.32.0`, each once, sorted."""
        names = {f"onnxruntime-gpu {row['version']}" for row in self.tables["onnxruntime"]["build"]}
        names |= {f"cuda-toolkit {row['version']}" for row in self.tables["toolkits"]["toolkit"]}
        names |= {f"torch {row['version']}" for row in self.tables["torch"]["torch"]}
        names |= {f"{row['name']} {row['version']}" for row in self.tables["torch"]["companion"]}
        beside = self.tables.get("plugins", {})
        names |= {f"{row['name']} {row['version']}" for row in beside.get("plugin", ())}
        names |= {f"onnxruntime {row['version']}" for row in beside.get("wheel", ())}
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
    if len(text) > LARGEST:
        problem = f"it has more than {LARGEST >> 20} MiB"
        raise Error("matrix-file-invalid", file=file, problem=problem)
    return tuple(parse_additions(line, file) for line in text.splitlines() or (b"",))


def parse_additions(text: bytes, file: object) -> Additions:
    """Read the document in `text`. Raises Error `matrix-file-invalid` naming `file`.

    Its rows are read as those of the shipped tables are, and each text must have its form.
    """
    try:
        document: Any = json.loads(text)
        read, index_url = _HEAD({"read": document["read"], "index_url": document["index"]})
        tables = {
            name: {kind: list(document["tables"][name][kind]) for kind in kinds}
            for name, kinds in _readers().items()
            if name in document["tables"] or name not in _SINCE
        }
        digest = _digest(read, index_url, tables)
        if (SCHEMA, digest) == (document["schema"], document["digest"]):
            for name, table in tables.items():
                for kind, read_row in _readers()[name].items():
                    read_rows(table, kind, read_row)
            return Additions(read=read, index_url=index_url, tables=tables, digest=digest)
        problem = "its content does not have its digest"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        kind_of_error = "" if type(error) is ValueError else f"{type(error).__name__}: "
        problem = (kind_of_error + str(error).lstrip(".: "))[:_LONGEST_PROBLEM]
    raise Error("matrix-file-invalid", file=file, problem=problem)


def _digest(read: str, index_url: str, tables: object) -> str:
    text = json.dumps([read, index_url, tables], sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def with_additions(name: str, table: TomlTable, added: Sequence[Additions]) -> TomlTable:
    """Return the table `name` of the shipped matrix with the rows that it lacks."""
    if not added or name not in _readers():
        return table
    grown = dict(table)
    for kind in _readers()[name]:
        rows: list[dict[str, Any]] = list(table[kind])
        for addition in added:
            new = cast("list[dict[str, Any]]", addition.tables.get(name, {}).get(kind, []))
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
    """Return the distributions with their new releases, and the files and code of those.

    Each of a reading's blocks of files or code is of one release.
    """
    by_name = {row["name"]: row for row in rows}
    for row in new:
        known = by_name.get(row["name"], {"releases": []})
        known_ids = {_identity(release) for release in known["releases"]}
        fresh = [release for release in row["releases"] if _identity(release) not in known_ids]
        versions = {(release["version"], release["platform"]) for release in fresh}
        files = [one for one in row.get("files", ()) if _place(one, one["versions"]) in versions]
        code = [one for one in row.get("code", ()) if _place(one, [one["first"]]) in versions]
        by_name[row["name"]] = {
            **row,
            **known,
            "releases": [*known["releases"], *fresh],
            "files": [*known.get("files", ()), *files],
            "code": [*known.get("code", ()), *code],
        }
    return list(by_name.values())


def _place(block: Mapping[str, Any], versions: Sequence[str]) -> tuple[str | None, str]:
    return next(iter(versions), None), block["platform"]
