"""The file system of an image, as its layers leave it: names, sizes, links, and the texts needed.

Links are followed inside the image alone, as in a chroot. What a member's name costs is bounded:
every node counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import Error

MOST_NODES = 1_500_000
"""Files and folders; one of PyTorch's images has 150,000."""
_MOST_LINKS = 40
"""As many as Linux follows on one path: path_resolution(7)."""
_LONGEST_NAME = 255
_DEEPEST = 200
"""Folders in one another, below which nothing is looked at."""


class File(NamedTuple):
    """A file; names that are hard links share one."""

    size: int
    """Bytes."""
    layer: int
    """The layer that brought it, from 0."""
    content: bytes | None = None
    """Of those that are read: `wanted.most_bytes`."""


class Folder(dict[str, "Node"]):
    """The nodes in a folder, by name."""


Node = File | str | Folder
"""A file, the target of a symbolic link, or a folder."""


class Tree:
    """The nodes of an image by their paths, which are written with or without a slash in front."""

    def __init__(self) -> None:
        self._root = Folder()
        self._count = 0

    def put(self, path: str, node: Node) -> Node | None:
        """Put `node` at `path`, and return what it replaces.

        A folder that is there already stays, and so does everything where `path` is impossible.
        Raises Error `image-too-large` where there are more than `MOST_NODES`.
        """
        above, _, name = path.strip("/").rpartition("/")
        folder = self._made(above) if path.count("/") < _DEEPEST else None
        if folder is None or not 0 < len(name) <= _LONGEST_NAME or name in {".", ".."}:
            return None
        old = folder.get(name)
        if isinstance(node, Folder) and isinstance(old, Folder):
            return None
        self._count_one()
        folder[name] = node
        return old

    def remove(self, path: str) -> Node | None:
        """Remove what is at `path` itself, and return it; None where nothing is."""
        above, _, name = path.rpartition("/")
        folder = self.find(above)
        return folder.pop(name, None) if isinstance(folder, Folder) else None

    def find(self, path: str) -> Node | None:
        """Return the file or the folder that `path` leads to through all links, or None."""
        found = self._walk(path)
        return found[1] if found else None

    def real(self, path: str) -> str | None:
        """Return the path without links, from `/`, of what `path` leads to; None: nothing."""
        found = self._walk(path)
        return "/" + "/".join(found[0]) if found else None

    def names(self, path: str) -> list[str]:
        """Return the names in the folder that `path` leads to, sorted; none where it is none."""
        folder = self.find(path)
        return sorted(folder) if isinstance(folder, Folder) else []

    def text(self, path: str) -> str:
        """Return the text of the file that `path` leads to; empty where it was not read."""
        node = self.find(path)
        content = node.content if isinstance(node, File) else None
        return (content or b"").decode("utf-8", "replace").replace("\r\n", "\n")

    def folders(self) -> Iterator[tuple[str, Folder]]:
        """Yield every folder and its path, which begins with `/`; that of the root is empty."""
        waiting = [("", self._root)]
        while waiting:
            path, folder = waiting.pop()
            yield path, folder
            waiting += [
                (f"{path}/{name}", node)
                for name, node in folder.items()
                if isinstance(node, Folder)
            ]

    def _walk(self, path: str) -> tuple[list[str], File | Folder] | None:
        """Return the path without links, in its parts, and what is there; None: nothing."""
        waiting = path.split("/")[::-1]
        trail: list[tuple[str, File | Folder]] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                del trail[-1:]
            if part in {"", ".", ".."}:
                continue
            here = trail[-1][1] if trail else self._root
            node = here.get(part) if isinstance(here, Folder) else None
            if isinstance(node, str):
                links += 1
                waiting += node.split("/")[::-1]
                trail = [] if node.startswith("/") else trail
            elif node is not None:
                trail.append((part, node))
            if node is None or links > _MOST_LINKS:
                return None
        return [name for name, _ in trail], trail[-1][1] if trail else self._root

    def _made(self, path: str) -> Folder | None:
        """Return the folder at `path`, made where it is missing; None where it cannot be."""
        found = self.find(path)
        if found is None and path:
            self.put(path, Folder())
            found = self.find(path)
        return found if isinstance(found, Folder) else None

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MOST_NODES:
            raise Error("image-too-large", count=MOST_NODES)


def size_of(node: Node | None, before: int) -> int:
    """Return the bytes in `node` that layers before `before` brought."""
    waiting, total = [node], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, Folder):
            waiting += one.values()
        elif isinstance(one, File) and one.layer < before:
            total += one.size
    return total
