"""The CUDA provider that lies in the environment already: linked, not unpacked once more.

Another build of onnxruntime that was installed over the GPU build has no file of this name, and it
is five sixths of the bytes: most of the time, and of the space, that the way back took. In a layer
over an image's a link or a new name would copy it: there it is left where it is.
"""

from __future__ import annotations

import copy
import csv
import os
import shutil
import sys
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from ..binaries.library_names import PROVIDER
from ..engine.choose import Engine
from ..engine.common import Prefix, StagedFile
from ..facts.target import Target
from ..index.kept_wheels import link_or_copy
from ..utils.files import file_digest
from .hashed_files import has_content
from .staged_tree import StagedTree, is_provider, long_path, sha256_of
from .state_folder import Site, join

_MOUNTS = Path("/proc/self/mountinfo")
_LAYERED = frozenset({"overlay", "fuse.fuse-overlayfs"})


class LeanWheel(NamedTuple):
    """A wheel to install, and what it lacks."""

    staged: StagedFile
    row: tuple[str, ...] = ()
    """The row of RECORD about the provider; empty where nothing was left out."""
    present: str = ""
    """Where that file lies in the environment."""

    def complete(self, tree: Path, *, layered: bool) -> None:
        """Bring the provider to where an engine has installed the rest in `tree`.

        pip writes the RECORD of the wheel, uv one of what it found in it. Where the environment is
        `layered` an empty file stands for the provider, until `leave_in_place`. Raises OSError.
        """
        infos = tree.rglob(f"{self.staged.path.name.partition('-')[0]}-*.dist-info")
        for info in infos if self.row else ():
            goal = Path(long_path(join(str(info.parent), os.path.normpath(self.row[0]))))
            goal.touch() if layered else link_or_copy(Path(long_path(self.present)), goal)
            record = Path(long_path(str(info)), "RECORD")
            text = record.read_text("utf-8")
            if f"\n{self.row[0]}," not in f"\n{text}":
                record.write_text(f"{text}{','.join(self.row)}\n", "utf-8")


def is_layered(folder: str) -> bool:
    """Return whether the filesystem of `folder` has layers, which a change copies files between.

    Source: https://docs.kernel.org/filesystems/overlayfs.html
    """
    if sys.platform != "linux":  # Wine shows that file, too
        return False
    try:
        mounts = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
        device = Path(folder).stat().st_dev
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    rows = [line.split() for line in mounts]
    return any(row[2] == number and row[row.index("-") + 1] in _LAYERED for row in rows)


def install_lean(  # noqa: PLR0917
    staged: Sequence[StagedFile],
    target: Target,
    site: Site,
    into: Prefix,
    engine: Engine,
    layered: bool,  # noqa: FBT001
) -> frozenset[str]:
    """Install `staged` into the prefix, but for the provider that the environment `site` has.

    Returns the paths for which an empty file stands. Raises OSError, and as `Engine.install`.
    """
    lean = [lean_wheel(file, site, into.work / "lean") for file in staged]
    engine.install([each.staged for each in lean], target, into)
    for each in lean:
        each.complete(into.folder, layered=layered)
    return frozenset(each.present for each in lean if each.row and layered)


def leave_in_place(tree: StagedTree, present: Collection[str]) -> StagedTree:
    """Return `tree`, for a layered environment, without the provider that stays where it is.

    That are the paths `present`, for which an empty file stands, and one that an engine has brought
    from its cache and that is there byte for byte. Who removes it later has removed it: no copy is
    set aside. Raises OSError.
    """
    stays = set(present)
    for path, source in tree.files.items():
        size = os.lstat(source).st_size
        if is_provider(path) and has_content(path, size, tree.hashes[path]):
            stays.add(path)
    files = {path: source for path, source in tree.files.items() if path not in stays}
    return tree._replace(files=files, in_place=frozenset(stays))


def lean_wheel(file: StagedFile, site: Site, folder: Path) -> LeanWheel:
    """Return the wheel `file` without the provider that is in the environment, byte for byte.

    It is written to `folder`; where the provider is another, or none, it is the wheel as it was.
    Raises OSError.
    """
    with zipfile.ZipFile(file.path) as whole:
        row = _row(whole)
        present = join(site.platlib, os.path.normpath("".join(row[:1])))
        if not row or not has_content(present, int(row[2]), sha256_of(row[1])):
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
    return next(
        (row for row in rows if "".join(row[2:]).isdecimal() and PROVIDER.fullmatch(row[0])), ()
    )
