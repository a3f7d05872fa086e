"""What the tree of an image tells of its system: platform, C library, toolkits, libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..errors import Error
from ..facts.model import Architecture, Library, Platform, Toolkit
from ..facts.parsers import is_library, parse_file_version, parse_os_release, parse_toolkit
from ..facts.target import MACHINES
from .tree import File, Tree

_GLIBC: dict[Architecture, str] = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
}
"""The loader of glibc, whose path every program names: the psABI of each architecture."""
_MUSL = re.compile(r"^P:musl\nV:(\d+(?:\.\d+)+)", re.MULTILINE)
"""In the database of apk, whose packages begin with these lines."""
_RELEASE = re.compile(rb"GNU C Library .*version (\d+\.\d+)")


def platform_of(tree: Tree, architecture: str) -> Platform:
    """Return the platform of an image; `architecture` as its configuration names it.

    Raises Error `image-without-system` where it has no loader and names none.
    """
    machine = MACHINES.get(architecture)
    musl = [one for one in _GLIBC if tree.find(f"/lib/ld-musl-{one}.so.1")]
    glibc = [one for one, loader in _GLIBC.items() if tree.find(loader)]
    machine = machine or next(iter([*glibc, *musl]), None)
    if machine is None:
        raise Error("image-without-system")
    libc = _glibc(tree, machine)
    if machine in musl and machine not in glibc:
        version = _MUSL.search(tree.text("/lib/apk/db/installed"))
        libc = f"musl {version[1]}" if version else "musl 1"
    release = tree.text("/etc/os-release") or tree.text("/usr/lib/os-release")
    return Platform("linux", machine, libc=libc, distribution=parse_os_release(release))


def _glibc(tree: Tree, machine: Architecture) -> str | None:
    for folder in _default(machine):
        node = tree.find(f"{folder}/libc.so.6")
        version = _RELEASE.search(node.content or b"") if isinstance(node, File) else None
        if version:
            return f"glibc {version[1].decode()}"
    return None


def toolkits_of(tree: Tree) -> tuple[Toolkit, ...]:
    """Return the CUDA toolkits in /usr/local, each once."""
    found = {}
    for name in tree.names("/usr/local"):
        path = tree.real(f"/usr/local/{name}")
        if name.startswith("cuda") and path:
            files = {file: tree.text(f"{path}/{file}") for file in ("version.json", "version.txt")}
            found[path] = Toolkit(parse_toolkit(files), path)
    return tuple(row for row in found.values() if row.version)


def libraries_of(
    tree: Tree, environment: Mapping[str, str], machine: Architecture, conda: str | None
) -> tuple[Library, ...]:
    """Return the CUDA libraries that the loader would find, the first of each name.

    `conda`: the prefix of a conda environment, whose own folder goes first.
    """
    found: dict[str, Library] = {}
    for folder in _searched(tree, environment, machine, conda):
        for name in filter(is_library, tree.names(folder)):
            path = f"{folder}/{name}"
            real = tree.real(path)
            if real and name not in found:
                found[name] = Library(name, path, parse_file_version(name, real))
    return tuple(found[name] for name in sorted(found))


def _searched(
    tree: Tree, environment: Mapping[str, str], machine: Architecture, conda: str | None
) -> Iterator[str]:
    """Yield the loader's folders in its order: ld.so(8), ldconfig(8)."""
    yield from [f"{conda}/lib"] if conda else ()
    paths = environment.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":")
    yield from (path.rstrip("/") for path in paths if path.startswith("/"))
    files = [f"/etc/ld.so.conf.d/{name}" for name in tree.names("/etc/ld.so.conf.d")]
    for file in ["/etc/ld.so.conf", *files]:
        lines = (line.strip() for line in tree.text(file).splitlines())
        yield from (line.rstrip("/") for line in lines if line.startswith("/"))
    yield from _default(machine)
    yield "/usr/local/lib"


def _default(machine: Architecture) -> Iterable[str]:
    multiarch = f"{machine}-linux-gnu"
    return (
        f"/lib/{multiarch}",
        f"/usr/lib/{multiarch}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )
