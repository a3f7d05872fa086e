"""Which files have to leave before others come.

Reads RECORDs and folders, changes nothing. Several distributions may own one file (all of
`nvidia-*` share `nvidia/__init__.py`, both builds of onnxruntime share everything): a file leaves
where all of its owners leave, or where a wheel that comes brings it anew.
"""

# Paths are text here: there are tens of thousands of them.
# ruff: noqa: PTH112, PTH114, PTH120, PTH208

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import Error
from ..facts.target import Installed, Target
from .state_folder import NAME, Site, join

_CACHED = re.compile(r"(?P<stem>.+?)\.[a-z]+-?\w+(\.opt-\w+)?\.pyc(\.\d+)?")
_SHARED = "onnxruntime"
"""The folder of which nothing may be left over when another build comes into it."""
_BUILDS = ("onnxruntime", "ort-")
"""How the names of those begin whose files are in that folder."""


def files_to_remove(
    target: Target,
    site: Site,
    names: frozenset[str],
    *,
    coming: frozenset[str] = frozenset(),
    incoming: Iterable[str] = (),
    whole: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the absolute paths of all files that leave, sorted.

    `names` are the canonical names of the distributions that leave, those among them that are
    `coming` again included; `incoming` the absolute paths that will be written, `whole` the folders
    that must be empty before. What an owner outside of `names` lists stays, unless it is written
    anew. In a venv a distribution that lost its list leaves all the same where its files are known
    without: those that come again, and the shared folder.

    Raises Error `installed-editable`, `installed-conda` or `no-record` where one of `names` cannot
    be taken out file by file, `installed-outside` where it lies outside the environment and is to
    leave for good, and `path-outside` where a link would lead what is written out of it.
    """
    own = [one for one in target.installed if one.key in names]
    gone: set[str] = set()
    for one in own:
        if _within(site, one):
            known = target.kind == "venv" and (one.key in coming or one.key.startswith(_BUILDS))
            gone |= _files(site, one, known=known)
        elif one.key not in coming:
            raise Error("installed-outside", name=one.name, path=one.metadata_path)
    stays: set[str] = set()
    for one in target.installed:
        if one.key not in names and _within(site, one):
            stays.update(_record(one) or ())
    gone -= stays
    written = {site.plain(path) for path in incoming}
    for path in written:
        if not site.inside(path):
            raise Error("path-outside", path=path)
    gone |= written
    gone |= {path for folder in whole for path in files_under(folder)}
    gone |= set(_leftovers(site, gone, stays))
    gone |= set(bytecode(gone))
    there = {path for path in gone if os.path.lexists(path)}
    folders = {path for path in there if os.path.isdir(path) and not os.path.islink(path)}
    for path in written & folders:
        raise Error("path-outside", path=path)
    return tuple(sorted(there - folders))


def bytecode(paths: Iterable[str]) -> Iterator[str]:
    """Give what interpreters have cached of the modules among `paths`."""
    stems: dict[str, set[str]] = {}
    for path in paths:
        if path.endswith(".py"):
            folder, name = os.path.split(path)
            stems.setdefault(join(folder, "__pycache__"), set()).add(name.removesuffix(".py"))
    for folder, wanted in stems.items():
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            cached = _CACHED.fullmatch(name)
            if cached and cached["stem"] in wanted:
                yield join(folder, name)


def distributions_here(target: Target, site: Site) -> list[tuple[str, str]]:
    """Return canonical name and version of what is installed in this environment itself.

    A venv may see the distributions of the Python below it, too.
    """
    return [(one.key, one.version) for one in target.installed if _within(site, one)]


def _within(site: Site, one: Installed) -> bool:
    """Tell whether the metadata are in a folder that this environment installs into."""
    folder, places = os.path.dirname(one.metadata_path), {site.purelib, site.platlib}
    # Most often the path is the real one, and a disk need not be asked about it.
    return folder in places or os.path.realpath(folder) in places


def _files(site: Site, one: Installed, *, known: bool) -> set[str]:
    """Return what RECORD lists of a distribution that leaves, and all of its metadata folder.

    Where it has none that is an error, unless the files are `known` without it.
    """
    if one.editable:
        raise Error("installed-editable", name=one.name, path=one.metadata_path)
    if one.installer == "conda":
        raise Error("installed-conda", name=one.name, path=one.metadata_path)
    listed = _record(one)
    if listed is None and not known:
        raise Error("no-record", name=one.name, path=one.metadata_path)
    inner = files_under(site.plain(one.metadata_path))
    return {path for path in listed or () if site.inside(path)}.union(inner)


def _record(one: Installed) -> frozenset[str] | None:
    """Return the absolute paths that the RECORD of `one` lists, or None where it has none."""
    try:
        text = Path(one.metadata_path, "RECORD").read_text(
            encoding="utf-8", errors="surrogateescape"
        )
    except OSError:
        return None
    base = os.path.realpath(Path(one.metadata_path).parent)
    plain: dict[str, str] = {}
    found = set()
    for row in csv.reader(text.splitlines()):
        if not row or not row[0]:
            continue
        folder, name = os.path.split(os.path.normpath(join(base, row[0])))
        if folder not in plain:
            plain[folder] = os.path.realpath(folder)
        found.add(join(plain[folder], name))
    return frozenset(found)


def _leftovers(site: Site, gone: set[str], stays: set[str]) -> Iterator[str]:
    """Give what nobody that stays owns in the shared folder, where anything of it leaves."""
    for root in dict.fromkeys((site.purelib, site.platlib)):
        shared = join(root, _SHARED)
        if not any(path.startswith(shared + os.sep) for path in gone):
            continue
        yield from (path for path in files_under(shared) if path not in stays)


def files_under(folder: str) -> Iterator[str]:
    """Give every file and every symbolic link under `folder`; nothing where it is itself a link."""
    if os.path.islink(folder):
        return
    for inner, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(join(inner, name))]
        yield from (join(inner, name) for name in [*names, *links])


def emptied_folders(paths: Iterable[str], site: Site) -> set[str]:
    """Return every folder between `paths` and the roots of the environment, roots excluded."""
    roots = {site.purelib, site.platlib, site.scripts, site.prefix, str(Path(site.purelib, NAME))}
    found: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder not in roots and folder not in found and site.inside(folder):
            found.add(folder)
            folder = os.path.dirname(folder)
    return found
