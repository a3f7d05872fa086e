# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""The program as it travels to a host: one zip archive of what is installed beside Ansible.

Everything in it is Python without compiled parts, so that one archive serves every host; but for uv,
which a host with another processor leaves away. What a distribution needs is followed by its own
metadata, for every Python that a host may have.
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
    """Yield every file of the program and of what it requires, with its place in the archive.

    What a marker asks for, such as an older Python, is taken along where it is installed here.
    """
    seen: set[str] = set()
    waiting = [(PROGRAM, "")]
    while waiting:
        name, marker = waiting.pop()
        name = re.sub(r"[-_.]+", "-", name).lower()
        if name in seen:
            continue
        seen.add(name)
        # What `setup.py` leaves in a source folder is no installation: it has no RECORD.
        installed = (row for row in metadata.distributions(name=name) if row.read_text("RECORD"))
        found = next(installed, None)
        if found is not None:
            yield from _files_of(name, found)
            waiting.extend(_required(found))
        elif not marker:
            raise BundleError(
                f"{name} is not installed beside Ansible on the controller; "
                "install it there from a clone of its repository: pip install ."
            )


def _files_of(name: str, found: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    files = [file for file in found.files or () if ".." not in file.parts]
    if not any(file.suffix == ".py" and "__editable__" not in file.name for file in files):
        raise BundleError(
            f"{name} is installed on the controller without its files (an editable installation?); "
            "install its wheel"
        )
    inside = [(file.as_posix(), file) for file in files]
    if name == "uv":  # finds its program beside the package, too
        inside += [("bin/uv", file) for file in found.files or () if file.name == "uv"]
    for place, file in inside:
        if not file.name.endswith((*_COMPILED, ".pyc")):
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                yield place, path


def _required(found: metadata.Distribution) -> Iterator[tuple[str, str]]:
    """Yield the names of what `found` requires without any extra, with their markers."""
    for line in found.requires or ():
        marker = line.partition(";")[2]
        name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip())
        if name and "extra" not in marker:
            yield name.group(), marker
