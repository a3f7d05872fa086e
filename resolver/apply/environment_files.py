"""What files an environment has: of a distribution, of a module, in a folder; and what a path is.

Reads only.
"""

# Paths are strings: there are tens of thousands of them.
# ruff: noqa: PTH114, PTH120, PTH208

from __future__ import annotations

import contextlib
import csv
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..facts.target import STATE_FOLDER
from ..utils.files import file_digest
from ..utils.foreign_text import LONGEST
from .journal import Fingerprint
from .state_folder import Site, join, plain_paths

_CACHED = re.compile(r"(?P<stem>.+?)\.[a-z]+-?\w+(\.opt-\w+)?\.pyc(\.\d+)?")
METADATA = (".dist-info", ".egg-info")
"""How the names of metadata folders end."""
UV_CACHE = "uv_cache.json"
"""In the metadata of what uv installed from a file: when that file came to its place."""
SHARED = "onnxruntime"
"""The folder in which no file of another build may remain."""
COPY = ".ortgpu-fix.tmp"
"""How the name of a copy to another filesystem ends until it is whole."""
NAMESPACE = os.path.join("nvidia", "__init__.py")  # noqa: PTH118 - relative
"""The file that every distribution of NVIDIA has."""
_INTERPRETER = re.compile(r"(?i)pythonw?([0-9][0-9.]*t?)?(\.exe)?$|(de)?activate|pypy")
"""What a venv has in its folder of scripts beside the scripts of distributions."""
_MADE = frozenset({"pyvenv.cfg", "lib64", ".gitignore"})
"""What it has in its own folder, by the names' small letters."""
_SLACK = 2_000_000_000
"""Nanoseconds by which a copy to another filesystem (FAT: two seconds) may change the time."""


def fingerprint(path: str) -> Fingerprint | None:
    """Return kind, size and time of `path` itself (no link is followed); None where nothing is."""
    try:
        about = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    for kind, is_kind in (("file", stat.S_ISREG), ("link", stat.S_ISLNK), ("folder", stat.S_ISDIR)):
        if is_kind(about.st_mode):
            return kind, 0 if kind == "folder" else about.st_size, about.st_mtime_ns
    return "special", 0, about.st_mtime_ns


def is_same(found: Fingerprint | None, recorded: Fingerprint) -> bool:
    """Return whether a file that was moved, or copied with its times, is the `recorded` one."""
    return found is not None and found[:2] == recorded[:2] and abs(found[2] - recorded[2]) <= _SLACK


def copy_of(path: str) -> str:
    """Return the path of a copy that becomes `path` when it is whole, beside it.

    Systems count the bytes of a name, and may allow no more than it has already.
    """
    folder, name = os.path.split(path)
    known = os.fsencode(name)[: LONGEST - len(COPY)].decode(errors="ignore")
    return join(folder, known + COPY)


def has_content(path: str, size: int, sha256: str) -> bool:
    """Return whether there is a file at `path`, no link, of this size and SHA-256 in hexadecimal.

    It is read only where the size is the same.
    """
    with contextlib.suppress(OSError):
        about = os.lstat(path)
        if stat.S_ISREG(about.st_mode) and about.st_size == size:
            return file_digest(Path(path)) == sha256
    return False


def metadata_folders(site: Site) -> list[str]:
    """Return the metadata folders (or files, of old ones) in the environment, sorted."""
    return sorted(
        join(root, name)
        for root in {site.purelib, site.platlib}
        for name in os.listdir(root)
        if name.endswith(METADATA)
    )


def recorded_files(metadata_path: str) -> set[str] | None:
    """Return the absolute paths in the RECORD of a distribution; None where it has none."""
    record = Path(metadata_path, "RECORD")
    try:
        text = record.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    base = os.path.realpath(record.parent.parent)
    paths = [line[0] for line in csv.reader(text.splitlines()) if line and line[0]]
    return {*plain_paths(join(base, line) for line in paths).values()}


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
    between = {folder for folder in folders if not site.inside(folder)}
    for start in {*map(os.path.dirname, paths), *folders}:
        folder = start
        while folder not in roots and folder not in between and site.inside(folder):
            between.add(folder)
            folder = os.path.dirname(folder)
    return between


def derived(paths: set[str]) -> Iterator[str]:
    """Yield what came of the files `paths` since: their bytecode, and links to them beside them.

    A plugin of onnxruntime makes such links when it is imported: `libtensorrt_rtx.so.1` to
    `libtensorrt_rtx.so.1.7.1`.
    """
    yield from bytecode(paths)
    for folder in {os.path.dirname(path) for path in paths if ".so." in path}:
        with contextlib.suppress(OSError):
            links = [join(folder, name) for name in os.listdir(folder)]
            yield from (one for one in links if os.path.islink(one) and _leads_to(one) in paths)


def _leads_to(link: str) -> str:
    return os.path.normpath(join(os.path.dirname(link), os.readlink(link)))  # noqa: PTH115


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


def is_interpreter(site: Site, path: str) -> bool:
    """Return whether `path` is what makes the environment one: what the module venv has made.

    Its Python, its configuration, what git is to leave out, and `lib64`, a link to `lib`
    (https://docs.python.org/3/library/venv.html).
    """
    folder, name = os.path.split(path)
    made = folder == site.prefix and name.casefold() in _MADE
    return made or (folder == site.scripts and _INTERPRETER.match(name) is not None)
