"""The files of the matrix: built, compared with what is there, written."""

from __future__ import annotations

import datetime as dt
import difflib
import re
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ortgpu_fix.guests.update import nvidia, onnxruntime, onnxruntime_rows, plugins, torch_rows
from ortgpu_fix.guests.update.catalogue import Catalogue, wanted
from ortgpu_fix.guests.update.spread import each
from ortgpu_fix.utils.toml_writer import Rows, document, table

from . import (
    checks,
    consumers,
    documents,
    floors,
    numpy_and_msvc,
    nvidia_tables,
    symbols,
    torch_documents,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ortgpu_fix.guests.update.reader import Reader

FILES = (
    *("nvidia", "toolkits", "numpy", "msvc", "onnxruntime"),
    *("symbols", "floors", "torch", "consumers", "plugins"),
)
SCHEMA = 1
_DATE = re.compile(r'^date = ".*"$', re.MULTILINE)
_HEADERS = {
    "onnxruntime": "What each build of onnxruntime-gpu is made for and needs.",
    "nvidia": "NVIDIA's component wheels: files, requirements, GPU code, read from the wheels.",
    "toolkits": "Which component wheels belong to a CUDA toolkit release (`cuda-toolkit`).",
    "symbols": "Symbols that CUDA providers take from CUDA libraries, and releases with them.",
    "floors": "Oldest releases with every symbol that a release takes; GPUs of compilers.",
    "torch": "Wheels of torch: CUDA, pins, GPUs; torchvision, torchaudio. [[variant]]: documents.",
    "numpy": "The newest numpy 1.x wheel for each Python and platform.",
    "consumers": "CUDA libraries that other distributions link or load by name.",
    "plugins": "Plugins with a provider for NVIDIA's GPUs, and the onnxruntime beside them.",
    "msvc": "The wheels of Microsoft's Visual C++ runtime (`msvc-runtime`) for each Python.",
}


class Builder:
    """Builds the files of the matrix; what several of them need is read once."""

    def __init__(self, reader: Reader, threads: int, *, every_wheel: bool) -> None:
        self._every_wheel = every_wheel
        self._reader = reader
        self._threads = threads

    @cached_property
    def known(self) -> dict[str, list[nvidia.ReadRelease]]:
        """NVIDIA's releases by distribution."""
        names = sorted(nvidia.DISTRIBUTIONS)
        listed = each(lambda name: nvidia.releases(self._reader, name, self._threads), names, 2)
        return dict(zip(names, listed, strict=True))

    @cached_property
    def builds(self) -> list[onnxruntime.ReadBuild]:
        """The builds of onnxruntime-gpu."""
        return onnxruntime.builds(self._reader, self._threads, every_wheel=self._every_wheel)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Which wheel holds what."""
        return Catalogue(self._reader, self.known, wanted(self.builds), self._threads)

    def tables(self, name: str) -> list[str]:
        """Return the tables of one file of `FILES`."""
        if name == "nvidia":
            return nvidia_tables.tables(self._reader, self.known, self._threads)
        if name == "toolkits":
            return _written("toolkit", nvidia.toolkits(self._reader, self.known))
        if name == "onnxruntime":
            there = {build.version for build in self.builds}
            rows = onnxruntime_rows.rows(self.builds, self.catalogue)
            return [*_written("build", rows), *documents.gone(there)]
        if name == "symbols":
            return symbols.tables(self.builds, self.catalogue)
        if name == "floors":
            return floors.tables(self._reader, self.known, self.builds, self._threads)
        if name == "torch":
            read = torch_rows.rows(self._reader, self._threads)
            builds, companions = (_written(kind, rows) for kind, rows in read.items())
            return [*builds, *torch_documents.variants(), *companions]
        if name == "plugins":
            read = plugins.rows(self._reader, self._threads, plugins.ON_PYPI)
            return [one for kind, rows in read.items() for one in _written(kind, rows)]
        if name == "consumers":
            return consumers.tables(self._reader, self._threads)
        if name == "msvc":
            return numpy_and_msvc.msvc_tables(self._reader, self._threads)
        return numpy_and_msvc.numpy_tables(self._reader, self._threads)


def refresh(
    reader: Reader,
    folder: Path,
    *,
    names: Sequence[str],
    write: bool,
    threads: int,
    every_wheel: bool = False,
) -> list[str]:
    """Build the named files; write them where asked; return the lines that differ.

    The date in a file is the day of the reading that last changed it.
    """
    builder = Builder(reader, threads, every_wheel=every_wheel)
    differences = []
    for name in names:
        tables = builder.tables(name)
        path = folder / f"{name}.toml"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = _document(name, tables, _date_of(before))
        if after == before:
            continue
        differences += _differences(name, before, after)
        if write:
            today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
            path.write_text(_document(name, tables, today), encoding="utf-8", newline="\n")
    return differences


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the files as they stand, taken together; see `checks`."""
    paths = {name: folder / f"{name}.toml" for name in FILES}
    missing = [f"{path.name} is missing" for path in paths.values() if not path.exists()]
    if missing:
        return missing
    return checks.problems(
        {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    )


def _written(kind: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the rows as tables; a list of tables in one has a line for each."""
    return [table(kind, {key: _in_rows(value) for key, value in row.items()}) for row in rows]


def _in_rows(value: Any) -> Any:  # noqa: ANN401 - any value of a row
    has_tables = isinstance(value, list) and any(isinstance(one, dict) for one in value)
    return Rows(value) if has_tables else value


def _document(name: str, tables: list[str], date: str) -> str:
    header = f"{_HEADERS[name]}\nGenerated by scripts/refresh_matrix.py: do not edit."
    return document(header, {"schema": SCHEMA, "date": date}, tables)


def _date_of(text: str) -> str:
    match = _DATE.search(text)
    return match[0].split('"')[1] if match else ""


def _differences(name: str, before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    kept = [line for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    return [f"{name}.toml: {line}" for line in kept if not _DATE.match(line[1:])]
