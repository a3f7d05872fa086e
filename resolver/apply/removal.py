"""Finds the files to set aside before others are installed; changes nothing.

Several distributions may own one file (all `nvidia-*` share `nvidia/__init__.py`, both builds of
onnxruntime share everything): it is removed where all its owners are, or a new wheel has it too.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH112, PTH114, PTH120, PTH208

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import Error
from ..facts.target import STATE_FOLDER, Installed, Target
from ..utils.files import file_digest
from .state_folder import Site, join, plain_paths

_CACHED = re.compile(r"(?P<stem>.+?)\.[a-z]+-?\w+(\.opt-\w+)?\.pyc(\.\d+)?")
METADATA = (".dist-info", ".egg-info")
"""How the names of metadata folders end."""
SHARED = "onnxruntime"
"""The folder in which no file of another build may remain."""
COPY = ".ortgpu-fix.tmp"
"""How the name of a copy to another filesystem ends until it is whole."""
NAMESPACE = os.path.join("nvidia", "__init__.py")  # noqa: PTH118 - relative
"""The file that every distribution of NVIDIA has."""
_INTERPRETER = re.compile(r"(?i)pythonw?([0-9][0-9.]*t?)?(\.exe)?$|activate|pypy")
"""What a venv has in its folder of scripts beside the scripts of distributions."""
_BUILDS = ("onnxruntime", "ort-")
"""How the names of the distributions begin whose files are in that folder."""


def files_to_remove(
    target: Target,
    site: Site,
    names: frozenset[str],
    *,
    coming: frozenset[str],
    incoming: Mapping[str, str],
    whole: Iterable[str],
) -> tuple[str, ...]:
    """Return the absolute paths of all files to set aside, sorted.

    `names` are the canonical names of the distributions to remove, with those that are `coming`
    again; `incoming` has the SHA-256 (or "") of every file that will be written by its path, as
    `plain_paths` returns it; `whole` are the folders that must be empty before. What other
    distributions own stays. In a venv a distribution without RECORD is removed all the same where
    its files are known without it: it comes again, or has its files in the shared folder.

    Raises Error `installed-editable`, `installed-conda` or `no-record` where one of `names` cannot
    be removed file by file, `installed-outside` where one that does not come again is outside the
    environment, `path-outside` where a file would be written outside of it, through a link, and
    `wheel-overwrites` where it is another distribution's, Python's or ours.
    """
    paths: set[str] = set()
    owners: dict[str, str] = {}
    for installed in target.installed:
        if installed.key not in names:
            if _within(site, installed):
                files = recorded_files(installed.metadata_path) or ()
                owners |= dict.fromkeys(files, installed.name)
        elif _within(site, installed):
            comes_again = installed.key in coming or installed.key.startswith(_BUILDS)
            paths |= _files(site, installed, known=target.kind == "venv" and comes_again)
        elif installed.key not in coming:
            raise Error("installed-outside", name=installed.name, path=installed.metadata_path)
    stays = owners.keys()
    for path, digest in incoming.items():
        if not site.inside(path):
            raise Error("path-outside", path=path)
        _check_overwritten(site, path, digest, owners.get(path))
    paths = (paths - stays) | incoming.keys()
    paths |= {path for folder in whole for path in files_under(folder)}
    paths |= _leftovers(site, paths) - stays
    paths |= set(bytecode(paths))
    paths = {path for path in paths if os.path.lexists(path)}
    folders = {path for path in paths if os.path.isdir(path) and not os.path.islink(path)}
    for path in incoming.keys() & folders:
        raise Error("path-outside", path=path)
    return tuple(sorted(paths - folders))


def _check_overwritten(site: Site, path: str, digest: str, owner: str | None) -> None:
    """Refuse to write over what is not ours to replace. Raises Error `wheel-overwrites`.

    A file of the same bytes may belong to several, and so may what all of NVIDIA's wheels have.
    """
    state = join(site.purelib, STATE_FOLDER)
    if path == state or path.startswith(join(state, "")):
        raise Error("wheel-overwrites", path=path, owner="ortgpu-fix")
    if is_interpreter(site, path):
        raise Error("wheel-overwrites", path=path, owner="Python")
    if owner is None or path in {join(root, NAMESPACE) for root in (site.purelib, site.platlib)}:
        return
    with contextlib.suppress(OSError):
        if not digest or file_digest(Path(path)) != digest:
            raise Error("wheel-overwrites", path=path, owner=owner)


def is_interpreter(site: Site, path: str) -> bool:
    """Return whether `path` is what makes the environment one: its Python, its configuration."""
    folder, name = os.path.split(path)
    return path == join(site.prefix, "pyvenv.cfg") or (
        folder == site.scripts and _INTERPRETER.match(name) is not None
    )


def bytecode(paths: Iterable[str]) -> Iterator[str]:
    """Yield the bytecode files of the modules among `paths`."""
    stems: dict[str, set[str]] = {}
    for path in paths:
        if path.endswith(".py"):
            folder, name = os.path.split(path)
            stems.setdefault(join(folder, "__pycache__"), set()).add(name.removesuffix(".py"))
    for folder, modules in stems.items():
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                cached = _CACHED.fullmatch(name)
                if cached and cached["stem"] in modules:
                    yield join(folder, name)


def distributions_here(target: Target, site: Site) -> list[tuple[str, str]]:
    """Return canonical name and version of what is installed in this environment itself.

    A venv may see the distributions of its base Python, too.
    """
    return [(row.key, row.version) for row in target.installed if _within(site, row)]


def _within(site: Site, installed: Installed) -> bool:
    folder, roots = os.path.dirname(installed.metadata_path), {site.purelib, site.platlib}
    # Mostly the path is the real one; then the disk need not be read.
    return folder in roots or os.path.realpath(folder) in roots


def _files(site: Site, installed: Installed, *, known: bool) -> set[str]:
    """Return what RECORD lists of a distribution to remove, and all of its metadata folder.

    Without a RECORD that is an error, unless the files are `known` without it.
    """
    name, path = installed.name, installed.metadata_path
    if installed.editable:
        raise Error("installed-editable", name=name, path=path)
    if installed.installer == "conda":
        raise Error("installed-conda", name=name, path=path)
    listed = recorded_files(path)
    if listed is None and not known:
        raise Error("no-record", name=name, path=path)
    (metadata,) = plain_paths([path]).values()
    return {file for file in listed or () if site.inside(file)}.union(files_under(metadata))


def recorded_files(metadata_path: str) -> set[str] | None:
    """Return the absolute paths in the RECORD of a distribution; None where it has none."""
    record = Path(metadata_path, "RECORD")
    try:
        text = record.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    base = os.path.realpath(record.parent.parent)
    rows = [row[0] for row in csv.reader(text.splitlines()) if row and row[0]]
    return {*plain_paths(join(base, row) for row in rows).values()}


def _leftovers(site: Site, paths: set[str]) -> set[str]:
    """Return all files in the shared folder, where one of `paths` is in it."""
    shared = {join(root, SHARED) for root in (site.purelib, site.platlib)}
    used = [folder for folder in shared if any(path.startswith(folder + os.sep) for path in paths)]
    return {path for folder in used for path in files_under(folder)}


def files_under(folder: str) -> Iterator[str]:
    """Yield every file and symbolic link under `folder`; nothing where it is a link itself."""
    if os.path.islink(folder):
        return
    for inner, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(join(inner, name))]
        yield from (join(inner, name) for name in [*names, *links])


def emptied_folders(paths: Iterable[str], site: Site, folders: Iterable[str] = ()) -> set[str]:
    """Return `folders` and every folder between them or `paths` and the environment's roots.

    The roots are excluded.
    """
    roots = {
        site.purelib,
        site.platlib,
        site.scripts,
        site.prefix,
        str(Path(site.purelib, STATE_FOLDER)),
    }
    between: set[str] = set()
    for start in {*map(os.path.dirname, paths), *folders}:
        folder = start
        while folder not in roots and folder not in between and site.inside(folder):
            between.add(folder)
            folder = os.path.dirname(folder)
    return between
