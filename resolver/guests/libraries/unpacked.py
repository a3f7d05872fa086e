"""NVIDIA's libraries in one flat directory, for programs that are not Python, with a manifest.

Shell. Every file is a copy: who changes one changes nothing else. What an earlier run wrote is
replaced; a file of somebody else's is not.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ...errors import Error
from ...plan.wheels import Wheel
from ...utils.files import disk_error, file_digest, read_bounded, write
from ...utils.foreign_text import plain_name
from ...utils.progress import Progress

MANIFEST = "ortgpu-fix-libraries.json"
LICENCES = "licenses"
_LIBRARY = re.compile(r"[^/]+(?:\.dll|\.so(?:\.\d+)*)")
_LICENCE = re.compile(
    r"[^/]+\.dist-info/(?:licenses/(?:.+/)?)?(?:LICEN[CS]E|NOTICE)[^/]*", re.IGNORECASE
)
_CHUNK = 1 << 20


class UnpackedFile(NamedTuple):
    """A file that was written."""

    name: str
    """From the directory, with slashes."""
    size: int
    sha256: str
    wheel: str
    """The file name of the wheel that it is from."""


def unpack(
    wheels: Mapping[Wheel, Path], into: Path, progress: Progress
) -> tuple[UnpackedFile, ...]:
    """Write the shared libraries of `wheels`, and their licences, into the directory `into`.

    Raises Error `libraries-in-the-way` where a file lies there that no earlier run wrote, or that
    was changed since; `wheel-odd` where two wheels have one name; `disk-full`, `disk-failed`.
    """
    members = {wheel: [*_members(wheel, path)] for wheel, path in wheels.items()}
    names = [name for rows in members.values() for _, name in rows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Error("wheel-odd", file=into, member=twice)
    progress("unpack")
    try:
        _make_room(into, names)
        written = [
            _extract(wheels[wheel], member, into / name, name, wheel)
            for wheel, rows in members.items()
            for member, name in rows
        ]
    except OSError as error:
        raise disk_error(error, into) from error
    return tuple(sorted(written))


def write_manifest(into: Path, document: Mapping[str, Any]) -> None:
    """Write what is there, and where it is from. Raises Error `file-unwritable`."""
    write(into / MANIFEST, json.dumps(document, indent=2) + "\n")


def _members(wheel: Wheel, path: Path) -> Iterable[tuple[str, str]]:
    """Yield each member that is wanted, and the name that it gets."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = PurePosixPath(member).name
            if plain_name(name) != name:
                continue
            if _LICENCE.fullmatch(member):
                yield member, f"{LICENCES}/{wheel.name}-{name}"
            elif _LIBRARY.fullmatch(name) and ".alt." not in name:
                yield member, name


def _make_room(into: Path, names: Sequence[str]) -> None:
    """Remove what an earlier run wrote, and refuse where others' files lie in the way."""
    into.mkdir(parents=True, exist_ok=True)
    (into / LICENCES).mkdir(exist_ok=True)
    ours = {row["name"]: row for row in _earlier(into)}
    wrong = [
        name
        for name in {*names, *ours}
        if (into / name).exists() and not _is_ours(into / name, ours.get(name))
    ]
    if wrong:
        raise Error("libraries-in-the-way", folder=into, files=", ".join(sorted(wrong)))
    for name in ours:
        (into / name).unlink(missing_ok=True)


def _is_ours(file: Path, row: Mapping[str, Any] | None) -> bool:
    return row is not None and file.is_file() and file_digest(file) == row["sha256"]


def _earlier(into: Path) -> list[Mapping[str, Any]]:
    """Return the files that an earlier run wrote; none where its manifest cannot be read."""
    try:
        rows = json.loads(read_bounded(into / MANIFEST))["files"]
        return [row for row in rows if isinstance(row["sha256"], str) and _inside(row["name"])]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _inside(name: str) -> bool:
    """Return whether a name of a manifest is one that was written: `libcudnn.so.9`."""
    parts = name.split("/")
    return parts[:-1] in ([], [LICENCES]) and plain_name(parts[-1]) == parts[-1] != ""


def _extract(path: Path, member: str, to: Path, name: str, wheel: Wheel) -> UnpackedFile:
    digest, size = hashlib.sha256(), 0
    with zipfile.ZipFile(path) as archive, archive.open(member) as source, to.open("xb") as file:
        while chunk := source.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return UnpackedFile(name, size, digest.hexdigest(), wheel.file)
