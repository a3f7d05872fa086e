"""The CUDA provider that lies in the environment already: linked, not unpacked once more.

Another build of onnxruntime that was installed over the GPU build has no file of this name, and it
is five sixths of the bytes: most of the time, and of the space, that the way back took.
"""

from __future__ import annotations

import base64
import copy
import csv
import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..engine.choose import Engine
from ..engine.common import Prefix, StagedFile
from ..evidence.onnxruntime import PROVIDER
from ..facts.target import Target
from ..index.kept_wheels import link_or_copy
from ..utils.files import file_digest
from .staged_tree import long_path
from .state_folder import Site, join


class LeanWheel(NamedTuple):
    """A wheel to install, and what it lacks."""

    staged: StagedFile
    row: tuple[str, ...] = ()
    """The row of RECORD about the provider; empty where nothing was left out."""
    present: str = ""
    """Where that file lies in the environment."""

    def complete(self, tree: Path) -> None:
        """Bring the provider to where an engine has installed the rest in `tree`.

        pip writes the RECORD of the wheel, uv one of what it found in it. Raises OSError.
        """
        infos = tree.rglob(f"{self.staged.path.name.partition('-')[0]}-*.dist-info")
        for info in infos if self.row else ():
            goal = Path(long_path(join(str(info.parent), os.path.normpath(self.row[0]))))
            link_or_copy(Path(long_path(self.present)), goal)
            record = Path(long_path(str(info)), "RECORD")
            text = record.read_text("utf-8")
            if f"\n{self.row[0]}," not in f"\n{text}":
                record.write_text(f"{text}{','.join(self.row)}\n", "utf-8")


def install_lean(
    staged: Sequence[StagedFile], target: Target, site: Site, into: Prefix, engine: Engine
) -> None:
    """Install `staged` into the prefix, but for the provider that the environment `site` has.

    Raises OSError, and as `Engine.install`.
    """
    lean = [lean_wheel(file, site, into.work / "lean") for file in staged]
    engine.install([each.staged for each in lean], target, into)
    for each in lean:
        each.complete(into.folder)


def lean_wheel(file: StagedFile, site: Site, folder: Path) -> LeanWheel:
    """Return the wheel `file` without the provider that is in the environment, byte for byte.

    It is written to `folder`; where the provider is another, or none, it is the wheel as it was.
    Raises OSError.
    """
    with zipfile.ZipFile(file.path) as whole:
        row = _row(whole)
        present = join(site.platlib, os.path.normpath("".join(row[:1])))
        if not _is(present, row):
            return LeanWheel(file)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / file.path.name
        with zipfile.ZipFile(path, "w") as lean:
            for info in whole.infolist():
                if info.filename != row[0]:
                    stored = copy.copy(info)
                    stored.compress_type = zipfile.ZIP_STORED
                    with whole.open(info) as source, lean.open(stored, "w") as goal:
                        shutil.copyfileobj(source, goal)
    wheel = file.wheel._replace(sha256=file_digest(path))
    return LeanWheel(StagedFile(wheel=wheel, path=path), row, present)


def _row(wheel: zipfile.ZipFile) -> tuple[str, ...]:
    """Return the row of RECORD about the provider; empty where the wheel has none."""
    records = (name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
    (record,) = (name for name in records if name.count("/") == 1)  # the others are vendored
    rows = map(tuple, csv.reader(wheel.read(record).decode(errors="replace").splitlines()))
    return next((row for row in rows if row[2:] and PROVIDER.fullmatch(row[0])), ())


def _is(path: str, row: tuple[str, ...]) -> bool:
    """Return whether the file at `path`, no link, is the one of the `row` of a RECORD."""
    try:
        if not row or str(os.lstat(path).st_size) != row[2]:  # of 400 MB, which are read then
            return False
        packed = base64.urlsafe_b64encode(bytes.fromhex(file_digest(Path(path))))
    except OSError:
        return False
    return row[1] == f"sha256={packed.decode().rstrip('=')}"
