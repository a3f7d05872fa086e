"""What uv has installed into the staging folder, and where each file of it belongs.

uv installs into a prefix of its own beside the environment. What is in a RECORD there, and the
bytecode of it, comes into the environment by renaming; whatever else uv left stays.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH118, PTH119, PTH120, PTH206

from __future__ import annotations

import base64
import contextlib
import csv
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from ..binaries.library_names import PROVIDER
from ..errors import Error
from ..evidence.metadata import all_requirements, fields
from ..facts.target import STATE_FOLDER, Installed
from ..plan.wheels import Wheel
from ..versions import version as parsed
from .environment_files import NAMESPACE, SHARED, copy_of
from .state_folder import Site, join

_IN_PLACE = ("poetry", "pdm")
"""How INSTALLER begins of the tools that do: see `break_hardlinks`."""
_SCRIPTS = frozenset({"bin", "Scripts"})


class StagedTree(NamedTuple):
    """What installing writes: absolute paths of the environment, and what lies ready for them."""

    files: dict[str, str]
    """Where each file is until it is moved to its path."""
    hashes: dict[str, str]
    """SHA-256 in hexadecimal of those files for which RECORD has one."""
    folders: tuple[str, ...]
    """Folders without a file."""
    infos: tuple[str, ...]
    """The dist-info folder of each wheel, in their order."""
    requires: tuple[tuple[str, ...], ...]
    """The `Requires-Dist` lines of each wheel, in their order."""


class _RecordedFile(NamedTuple):
    """A row of a RECORD."""

    path: str
    """Absolute, in the staging folder."""
    digest: str
    size: str


def read_staged_tree(tree: Path, site: Site, wheels: Sequence[Wheel]) -> StagedTree:
    """Return what lies in the prefix `tree`, into which uv has installed `wheels`.

    A RECORD that would not be right in the environment, which may keep its scripts elsewhere than a
    prefix does, is written anew. Raises Error `install-failed` where a wheel is not there or not
    whole, `wheel-odd` for what is no regular file, `wheel-escapes` for what is our own folder, and
    `wheel-overwrites` where two wheels have different files for one path.
    """
    places = _Places(tree, site, wheels)
    files: dict[str, str] = {places.goal(path): long_path(path) for path in places.compiled}
    hashes: dict[str, str] = {}
    shared = {join(root, NAMESPACE) for root in (site.purelib, site.platlib)}
    for wheel, info in zip(wheels, places.infos, strict=True):
        recorded = list(_recorded_files(info, wheel, places))
        if any(places.moves(file.path, info) for file in recorded):
            _write_record(recorded, info, places)
        for file in recorded:
            goal = places.goal(file.path)
            if hashes.setdefault(goal, file.digest) != file.digest or (
                goal in files and not file.digest
            ):
                if goal not in shared:
                    raise Error("wheel-overwrites", path=goal, owner=wheel.name)
                hashes[goal] = ""
            files[goal] = long_path(file.path)
    return StagedTree(
        files=files,
        hashes=hashes,
        folders=tuple(places.goal(path) for path in places.empty if places.is_module(path)),
        infos=tuple(map(places.goal, places.infos)),
        requires=tuple(
            tuple(all_requirements(_text(info, "METADATA", "replace"))) for info in places.infos
        ),
    )


def writes_in_place(installed: Iterable[Installed]) -> bool:
    """Return whether a tool has installed something that writes into the files that are there."""
    return any((one.installer or "").lower().startswith(_IN_PLACE) for one in installed)


def break_hardlinks(tree: Path, site: Site, wheels: Sequence[Wheel]) -> None:
    """Make the files of onnxruntime in the prefix `tree` files of their own, not links.

    Each build of onnxruntime has files of the same names. Poetry and PDM write into those that are
    there (https://github.com/pypa/installer/blob/main/src/installer/destinations.py), and so into
    uv's cache, which would have nothing right left to bring back. The CUDA provider stays a link:
    no other build that lies over this one has it, and it is five sixths of the bytes. Raises
    OSError, and Error as `read_staged_tree`.
    """
    roots = (long_path(join(root, SHARED)) for root in _Places(tree, site, wheels).roots)
    for path in (
        join(at, name) for top in roots for at, _, names in os.walk(top) for name in names
    ):
        if os.lstat(path).st_nlink > 1 and not is_provider(path):
            own = copy_of(path)
            shutil.copy2(path, own)
            Path(own).replace(path)


def is_provider(path: str) -> bool:
    """Return whether the file is a CUDA provider of onnxruntime, by its name."""
    return PROVIDER.match(path.replace(os.sep, "/")) is not None


def _walk(tree: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the dist-info folders, the folders without a file, and the bytecode below `tree`."""
    infos, empty, compiled = [], [], []
    root = long_path(str(tree))
    for found, folders, names in os.walk(root):
        folder = f"{tree}{found.removeprefix(root)}"
        infos += [join(folder, name) for name in folders if name.endswith(".dist-info")]
        if not folders and not names and folder != str(tree):
            empty.append(folder)
        if os.path.basename(folder) == "__pycache__":
            compiled += [join(folder, name) for name in names if name.endswith(".pyc")]
    return infos, empty, compiled


def _dist_info(infos: Sequence[str], wheel: Wheel) -> str:
    """Return the one of `infos` that is that of `wheel`: the outermost, for some are vendored."""
    found = []
    for path in infos:
        stem, _, number = os.path.basename(path).removesuffix(".dist-info").partition("-")
        if canonicalize_name(stem) == wheel.name and parsed(number) == parsed(wheel.version):
            found.append(path)
    if not found:
        raise Error("install-failed", said=f"{wheel.name} {wheel.version} was not installed")
    return min(found, key=lambda path: path.count(os.sep))


class _Places:
    """What lies in the staging prefix, and where it belongs in the environment."""

    def __init__(self, tree: Path, site: Site, wheels: Sequence[Wheel]) -> None:
        self._tree, self._site = str(tree), site
        infos, self.empty, self.compiled = _walk(tree)
        self.infos = [_dist_info(infos, wheel) for wheel in wheels]
        self.roots = {os.path.dirname(info): self._site_root(info) for info in self.infos}

    def _site_root(self, info: str) -> str:
        if self._site.purelib == self._site.platlib:
            return self._site.purelib
        (pure,) = fields(_text(info, "WHEEL", "replace"), "Root-Is-Purelib")
        return self._site.purelib if "".join(pure[:1]).lower() == "true" else self._site.platlib

    def goal(self, path: str) -> str:
        """Return the absolute path in the environment of what lies at `path`."""
        for root, goal in self.roots.items():
            if path == root or path.startswith(root + os.sep):
                return goal + path[len(root) :]
        parts = self.parts(path)
        if parts[0] == "local" and len(parts) > 1:  # Debian's own pip
            parts = parts[1:]
        if parts[0] in _SCRIPTS and len(parts) > 1:
            return os.path.join(self._site.scripts, *parts[1:])
        # The prefix of Debian's Python is /usr, and what is installed there goes to /usr/local.
        return os.path.join(os.path.dirname(self._site.scripts), *parts)

    def is_module(self, path: str) -> bool:
        """Return whether `path` is in a folder of modules, and none itself."""
        return any(path.startswith(root + os.sep) for root in self.roots)

    def parts(self, path: str) -> list[str]:
        """Return the parts of `path`, a normal one, below the staging prefix; none outside."""
        root = join(self._tree, "")
        return path[len(root) :].split(os.sep) if path.startswith(root) else []

    def moves(self, path: str, info: str) -> bool:
        """Return whether `path` lies elsewhere, seen from `info`, in the environment."""
        if path.startswith(os.path.dirname(info) + os.sep):
            return False
        return os.path.relpath(path, info) != os.path.relpath(self.goal(path), self.goal(info))


def _recorded_files(info: str, wheel: Wheel, places: _Places) -> Iterator[_RecordedFile]:
    """Yield the rows of the RECORD in `info`, whose files are there and may be installed.

    Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    root = os.path.dirname(info)
    try:
        text = _text(info, "RECORD", "surrogateescape")
        listed = [line for line in csv.reader(text.splitlines(), strict=True) if line and line[0]]
    except (OSError, csv.Error) as error:
        raise Error("install-failed", said=f"{wheel.name} has no RECORD") from error
    for path, *about in listed:
        where = os.path.normpath(join(root, path))
        parts = places.parts(where)
        if not parts or STATE_FOLDER in (part.casefold() for part in parts):
            raise Error("wheel-escapes", file=wheel.file, member=path)
        try:
            found = os.lstat(long_path(where))
        except (OSError, ValueError) as error:
            said = f"{path} of {wheel.name} was not installed"
            raise Error("install-failed", said=said) from error
        if not stat.S_ISREG(found.st_mode):
            raise Error("wheel-odd", file=wheel.file, member=path)
        digest = sha256_of("".join(about[:1]))
        yield _RecordedFile(where, digest, about[1] if len(about) > 1 else "")


def sha256_of(column: str) -> str:
    """Return the SHA-256 in hexadecimal of the hash in a RECORD, `sha256=…`; "" without one."""
    kind, _, packed = column.partition("=")
    with contextlib.suppress(ValueError):
        if kind == "sha256":
            return base64.urlsafe_b64decode(f"{packed}=").hex()
    return ""


def _text(info: str, name: str, errors: str) -> str:
    return Path(long_path(info), name).read_text(encoding="utf-8", errors=errors)


def long_path(path: str) -> str:
    """Return an absolute path that Windows takes however long it is.

    The prefix lies deeper than the environment. Source:
    https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
    """
    if sys.platform == "win32" and not path.startswith("\\\\?\\"):
        return f"\\\\?\\UNC{path[1:]}" if path.startswith("\\\\") else f"\\\\?\\{path}"
    return path


def _write_record(recorded: Sequence[_RecordedFile], info: str, places: _Places) -> None:
    """Write RECORD with the paths as they are in the environment."""
    root = os.path.dirname(places.goal(info))
    with Path(long_path(info), "RECORD").open(
        "w", encoding="utf-8", errors="surrogateescape"
    ) as record:
        writer = csv.writer(record, lineterminator="\n")
        for file in recorded:
            where = os.path.relpath(places.goal(file.path), root).replace(os.sep, "/")
            packed = base64.urlsafe_b64encode(bytes.fromhex(file.digest)).decode().rstrip("=")
            writer.writerow([where, f"sha256={packed}" if packed else "", file.size])
