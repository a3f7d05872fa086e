# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""The program as it travels to a host: one zip archive of what is installed beside Ansible.

Everything in it is Python without compiled parts, so that one archive serves every host. What a
distribution needs is followed by its own metadata, for every Python that a host may have.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

PROGRAM = "ortgpu-fix"
OLD_PYTHONS = frozenset({"tomli"})
"""What only Pythons older than the controller's need; taken along where it is installed."""
_COMPILED = (".so", ".pyd", ".dll", ".dylib")


class BundleError(Exception):
    """The program cannot be sent as it is installed; the text says why, and what to do."""


def bundle_in(folder: Path) -> Path:
    """Return the archive in `folder`, which is made where it is not there yet.

    Several processes may ask at once: each writes a file of its own, and renames it.
    Raises BundleError.
    """
    archive = folder / "ortgpu-fix.zip"
    if not archive.exists():
        handle, name = tempfile.mkstemp(dir=folder, suffix=".zip")
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", strict_timestamps=False) as zipped,
        ):
            for inside, path in sorted(_files()):
                zipped.write(path, inside, zipfile.ZIP_DEFLATED)
        Path(name).replace(archive)
    return archive


def _files() -> Iterator[tuple[str, Path]]:
    """Yield every file of the program and of what it requires, with its place in the archive."""
    seen: set[str] = set()
    waiting = [PROGRAM, *sorted(OLD_PYTHONS)]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        # What `setup.py` leaves in a source folder is no installation: it has no RECORD.
        installed = (row for row in metadata.distributions(name=name) if row.read_text("RECORD"))
        found = next(installed, None)
        if found is None:
            if name in OLD_PYTHONS:
                continue
            raise BundleError(
                f"{name} is not installed beside Ansible on the controller; "
                "install it there from a clone of its repository: pip install ."
            )
        yield from _files_of(name, found)
        waiting.extend(_required(found))


def _files_of(name: str, found: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    files = [file for file in found.files or () if ".." not in file.parts]
    if not any(file.suffix == ".py" and "__editable__" not in file.name for file in files):
        raise BundleError(
            f"{name} is installed on the controller without its files (an editable installation?); "
            "install its wheel"
        )
    for file in files:
        if not file.name.endswith((*_COMPILED, ".pyc")):
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                yield file.as_posix(), path


def _required(found: metadata.Distribution) -> Iterator[str]:
    """Yield the names of what `found` requires without any extra."""
    for line in found.requires or ():
        marker = line.partition(";")[2]
        if "extra" in marker:
            continue
        name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip())
        if name and (not marker or name.group().lower() in OLD_PYTHONS or _holds(line)):
            yield name.group()


def _holds(line: str) -> bool:
    """Tell whether the marker of a requirement is true on the controller."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - required by the program

    marker = Requirement(line).marker
    return marker is None or marker.evaluate()
