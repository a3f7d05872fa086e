"""Finds the files to back up before others are installed; changes nothing.

Several distributions may own one file (all `nvidia-*` share `nvidia/__init__.py`, both builds of
onnxruntime share everything): it is removed where all its owners are, or a new wheel has it too.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH112, PTH114, PTH120

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import Error
from ..facts.target import Installed, Target
from ..plan.model import REMOVAL_BLOCKERS
from ..utils.files import file_digest
from .environment_files import (
    NAMESPACE,
    SHARED,
    derived,
    files_under,
    is_interpreter,
    recorded_files,
)
from .state_folder import Site, join, plain_paths

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
    """Return the absolute paths of all files to back up, sorted.

    `names` are the canonical names of the distributions to remove, with those that are `coming`
    again; `incoming` has the SHA-256 (or "") of every file that will be written by its path, as
    `plain_paths` returns it; `whole` are the folders that
    must be empty before. What other distributions own stays. In a venv a distribution
    without RECORD is removed all the same where its files are known without it: it comes again, or
    has its files in the shared folder.

    Raises as `check_removable`, and Error `no-record` where the files of one of `names` are not
    known, `path-outside` where a file would be written outside of the environment, through a link,
    and `wheel-overwrites` where it is another distribution's, Python's or ours.
    """
    check_removable(target, site, names, coming)
    paths: set[str] = set()
    owners: dict[str, str] = {}
    for installed in target.installed:
        if installed.key not in names:
            if _within(site, installed):
                files = recorded_files(installed.metadata_path) or ()
                owners |= dict.fromkeys(files, installed.name)
        elif _within(site, installed):
            comes_again = installed.key in coming or installed.key.startswith(_BUILDS)
            paths |= _files(installed, known=target.kind == "venv" and comes_again)
    stays = owners.keys()
    for path, digest in incoming.items():
        if not site.inside(path):
            raise Error("path-outside", path=path)
        _check_overwritten(site, path, digest, owners.get(path))
    paths = (paths - stays) | incoming.keys()
    paths |= {path for folder in whole for path in files_under(folder)}
    paths |= _leftovers(site, paths) - stays
    paths |= set(derived(paths))
    paths = {path for path in paths if os.path.lexists(path) and _may_go(site, path)}
    folders = {path for path in paths if os.path.isdir(path) and not os.path.islink(path)}
    for path in incoming.keys() & folders:
        raise Error("path-outside", path=path)
    return tuple(sorted(paths - folders))


def check_removable(
    target: Target, site: Site, names: frozenset[str], coming: frozenset[str]
) -> None:
    """Refuse what is not ours to remove, or lies elsewhere and is in use.

    Raises Error `installed-editable`, `installed-conda` or `installed-pixi` for one of `names` in
    the environment, and `installed-outside` for one that does not come again and is imported from
    outside of it.
    """
    for installed in target.installed:
        name, path = installed.name, installed.metadata_path
        if installed.key not in names:
            continue
        if not _within(site, installed):
            if installed.key not in coming and target.find(installed.key) is installed:
                raise Error("installed-outside", name=name, path=path)
        elif installed.removal_blocker:
            raise Error(REMOVAL_BLOCKERS[installed.removal_blocker], name=name, path=path)


def _check_overwritten(site: Site, path: str, digest: str, owner: str | None) -> None:
    """Refuse to write over what is not ours to replace. Raises Error `wheel-overwrites`.

    A file of the same bytes may belong to several, and so may what all of NVIDIA's wheels have.
    """
    if site.owns(path):
        raise Error("wheel-overwrites", path=path, owner="ortgpu-fix")
    if is_interpreter(site, path):
        raise Error("wheel-overwrites", path=path, owner="Python")
    if owner is None or path in {join(root, NAMESPACE) for root in (site.purelib, site.platlib)}:
        return
    with contextlib.suppress(OSError):
        if not digest or file_digest(Path(path)) != digest:
            raise Error("wheel-overwrites", path=path, owner=owner)


def installed_in_site(target: Target, site: Site) -> list[tuple[str, str]]:
    """Return canonical name and version of what is installed in this environment itself.

    A venv may see the distributions of its base Python, too.
    """
    return [
        (package.key, package.version) for package in target.installed if _within(site, package)
    ]


def _within(site: Site, installed: Installed) -> bool:
    folder, roots = os.path.dirname(installed.metadata_path), {site.purelib, site.platlib}
    # Mostly the path is the real one; then the disk need not be read.
    return folder in roots or os.path.realpath(folder) in roots


def _files(installed: Installed, *, known: bool) -> set[str]:
    """Return what RECORD lists of a distribution to remove, and all of its metadata folder.

    Without a RECORD that is an error, unless the files are `known` without it.
    """
    path = installed.metadata_path
    listed = recorded_files(path)
    if listed is None and not known:
        raise Error("no-record", name=installed.name, path=path)
    (metadata,) = plain_paths([path]).values()
    return {*(listed or ()), *files_under(metadata)}


def _may_go(site: Site, path: str) -> bool:
    """Return whether a RECORD may have `path` removed: not what is ours, or makes it a venv."""
    return site.may_hold(path) and not is_interpreter(site, path)


def _leftovers(site: Site, paths: set[str]) -> set[str]:
    """Return all files in the shared folder, where one of `paths` is in it."""
    shared = {join(root, SHARED) for root in (site.purelib, site.platlib)}
    used = [folder for folder in shared if any(path.startswith(folder + os.sep) for path in paths)]
    return {path for folder in used for path in files_under(folder)}
