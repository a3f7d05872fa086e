"""The facts files of several machines, each with a name that distinguishes it from the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...cli.facts_files import read_facts
from ...errors import Error, cause
from ...facts.model import Facts


def read_machines(files: Sequence[str]) -> list[tuple[str, Facts]]:
    """Return the facts in `files`, each with a name: as much of its path as distinguishes them.

    A directory stands for every `*.json` in it.
    Raises Error `facts-twice`, and as `read_facts` does, with the file named.
    """
    files = [one for file in files for one in _files_at(file)]
    paths = [Path(file).resolve() for file in files]
    seen: set[Path] = set()
    for file, path in zip(files, paths, strict=True):
        if path in seen:
            raise Error("facts-twice", file=file)
        seen.add(path)
    names = machine_names([(*path.parent.parts, path.stem) for path in paths])
    return [(name, _read_named(file)) for name, file in zip(names, files, strict=True)]


def _files_at(file: str) -> list[str]:
    """Return the facts files in the directory `file`, a pattern where there are none; or `file`."""
    if not Path(file).is_dir():
        return [file]
    inside = Path(file, "*.json")
    return sorted(map(str, inside.parent.glob(inside.name))) or [str(inside)]


def _read_named(file: str) -> Facts:
    try:
        return read_facts(file)
    except Error as error:
        if error.code != "facts-invalid":
            raise
        named = {**error.values, "key": cause("key-of-file", file=file, key=error.values["key"])}
        raise Error(error.code, **named) from error


def machine_names(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a name for each facts file from the parts of its path, the last without its suffix.

    As few last parts as make all names different. The paths must differ.
    """
    for depth in range(1, max(map(len, paths), default=0) + 1):
        names = tuple("/".join(parts[-depth:]) for parts in paths)
        if len(set(names)) == len(names):
            return names
    return tuple("/".join(parts) for parts in paths)
