"""Opens an image: a root folder, a tar of `docker save` or `docker export`, an OCI layout.

Formats: https://github.com/moby/docker-image-spec (`manifest.json`),
https://github.com/opencontainers/image-spec/blob/main/image-layout.md (`index.json`).
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from ..errors import Error
from .layers import (
    MOST_AT_ONCE,
    Allowance,
    Guarded,
    Layer,
    LayerMember,
    apply_members,
    read_layer,
    read_members,
    why,
)
from .tree import File, Folder, Tree
from .wanted import most_bytes

_INDEX, _MANIFEST = "index.json", "manifest.json"
_MOST_BLOBS = 20_000
"""Members of an archive of layers; one with more is a file system itself."""
_NOT_OF_THE_IMAGE = frozenset({"/proc", "/sys", "/dev"})
_DEEPEST = 4
"""Indexes in one another."""
ROOT = "/"
"""The name of the one layer of a root folder or of a flat tar."""


class Image(NamedTuple):
    """An image: its files as its layers leave them, and its configuration."""

    tree: Tree
    layers: tuple[Layer, ...]
    environment: Mapping[str, str] = {}
    """`Env` of its configuration."""
    architecture: str = ""
    """As its configuration names it: `amd64`; empty: it has none."""


def read_image(path: Path) -> Image:
    """Return the image at `path`; nothing of it is run, and nothing written.

    Raises Error `image-unreadable`, `image-several` and `image-too-large`.
    """
    try:
        if path.is_dir() and not (path / _INDEX).is_file() and not (path / _MANIFEST).is_file():
            return _root_folder(path)
        blobs = _Folder(path) if path.is_dir() else _Tar(path)
        for name, read in ((_MANIFEST, _docker), (_INDEX, _oci)):
            if blobs.has(name):
                return _layered(blobs, *read(blobs))
        with path.open("rb") as stream:
            tree = Tree()
            return Image(tree, (read_layer(stream, path.name, tree, 0),))
    except (
        OSError,
        tarfile.TarError,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise Error("image-unreadable", file=path, cause=why(error)) from error


def _root_folder(path: Path) -> Image:
    """Return a root file system; links are not followed, and what is mounted there is not of it."""
    tree, total = Tree(), 0
    seen: dict[tuple[int, int], File] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(f"{path}{folder}" or "/"))
        except OSError:
            continue
        for entry in entries:
            inside = f"{folder}/{entry.name}"
            if entry.is_symlink():
                tree.put(inside, os.readlink(entry.path))  # noqa: PTH115 - many of them
            elif entry.is_dir(follow_symlinks=False):
                tree.put(inside, Folder())
                waiting += [] if inside in _NOT_OF_THE_IMAGE else [inside]
            elif entry.is_file(follow_symlinks=False):
                known = entry.stat(follow_symlinks=False)
                key = known.st_dev, known.st_ino
                if key not in seen or known.st_nlink == 1:
                    seen[key] = File(known.st_size, 0, _content(entry.path, inside))
                    total += known.st_size
                tree.put(inside, seen[key])
    return Image(tree, (Layer(name=ROOT, size=total, lost=0),))


def _content(path: str, inside: str) -> bytes | None:
    most = most_bytes(inside[1:])
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except OSError:
        return None


class _Folder:
    """The files of an image that lies unpacked in a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, name: str) -> bool:
        return (self._path / name).is_file()

    def size(self, name: str) -> int:
        return self._file(name).stat().st_size

    def open(self, name: str) -> IO[bytes]:
        return self._file(name).open("rb")

    def _file(self, name: str) -> Path:
        if ".." in Path(name).parts:
            raise ValueError(name)
        return self._path / name.lstrip("/")


class _Tar:
    """The files of an image in a tar, where they lie."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members: dict[str, tarfile.TarInfo] = {}
        with self._opened() as tar:
            while len(self._members) < _MOST_BLOBS and (info := tar.next()) is not None:
                self._members[info.name.removeprefix("./")] = info

    def has(self, name: str) -> bool:
        return name in self._members

    def size(self, name: str) -> int:
        return self._members[name].size

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        with self._opened() as tar:
            file = tar.extractfile(self._members[name])
            if file is None:
                raise ValueError(name)
            yield file

    @contextmanager
    def _opened(self) -> Iterator[tarfile.TarFile]:
        """Open the tar anew: each layer is read with a stream of its own."""
        with self._path.open("rb") as stream:
            guarded = cast("IO[bytes]", Guarded(stream, None))
            with tarfile.TarFile(fileobj=guarded, mode="r") as tar:
                yield tar


def _layered(blobs: _Folder | _Tar, config: Mapping[str, Any], layers: list[str]) -> Image:
    """Return the image of these layers.

    They are read side by side, for to unpack them takes long; the largest first, or the others
    would be done when it begins.
    """
    tree, allowance = Tree(), Allowance()

    def members(number: int, name: str) -> Sequence[LayerMember]:
        with blobs.open(name) as stream:
            return read_members(stream, name, number, allowance)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            rows = sorted(enumerate(layers), key=lambda row: blobs.size(row[1]), reverse=True)
            jobs = {number: pool.submit(members, number, name) for number, name in rows}
            read = [
                apply_members(jobs[number].result(), name, tree, number)
                for number, name in enumerate(layers)
            ]
        finally:
            allowance.end()
            pool.shutdown(cancel_futures=True)
    variables = config.get("config", {}).get("Env") or ()
    environment = dict(row.partition("=")[::2] for row in variables)
    return Image(tree, tuple(read), environment, str(config.get("architecture", "")))


def _json(blobs: _Folder | _Tar, name: str) -> Any:  # noqa: ANN401 - any document
    with blobs.open(name) as stream:
        return json.loads(stream.read(MOST_AT_ONCE))


def _docker(blobs: _Folder | _Tar) -> tuple[Mapping[str, Any], list[str]]:
    images = _json(blobs, _MANIFEST)
    _only_one([", ".join(image.get("RepoTags") or ()) for image in images])
    return _json(blobs, images[0]["Config"]), images[0]["Layers"]


def _oci(blobs: _Folder | _Tar) -> tuple[Mapping[str, Any], list[str]]:
    manifests = list(_manifests(blobs, _INDEX))
    _only_one([str(row.get("digest")) for row in manifests])
    manifest = _json(blobs, _blob(manifests[0]))
    return _json(blobs, _blob(manifest["config"])), [_blob(row) for row in manifest["layers"]]


def _manifests(blobs: _Folder | _Tar, index: str, deep: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the manifests of images; what attests something of one is none."""
    for row in _json(blobs, index)["manifests"]:
        if "index" in row.get("mediaType", "") or "manifest.list" in row.get("mediaType", ""):
            if deep < _DEEPEST:
                yield from _manifests(blobs, _blob(row), deep + 1)
        elif row.get("platform", {}).get("os") != "unknown":
            yield row


def _blob(row: Mapping[str, Any]) -> str:
    return "blobs/" + str(row["digest"]).replace(":", "/")


def _only_one(images: list[str]) -> None:
    """Raise Error `image-several` where there are several, or none."""
    if len(images) != 1:
        raise Error("image-several", count=len(images), images=", ".join(images))
