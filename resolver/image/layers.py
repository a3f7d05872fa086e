"""Reads the layers of an image, one after another, into the tree that they leave.

Nothing is unpacked: of a tar that is not compressed only the heads are read, and the few files that
are wanted.

How a layer changes those below it: https://github.com/opencontainers/image-spec/blob/main/layer.md
"""

from __future__ import annotations

import tarfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple, cast

from ..errors import Cause, Error, cause
from ..messages.sections import size
from .inflated import Inflated
from .tree import MOST_NODES, File, Folder, Node, Tree, size_of
from .wanted import most_bytes

MOST_UNPACKED = 64_000_000_000
"""Bytes of one compressed layer."""
MOST_AT_ONCE = 4_000_000
"""Bytes of one read: the name of a member can be as long as its archive says."""
MOST_KEPT = 500_000_000
"""Bytes of all that is read and kept; of PyTorch's images it is 20 MB."""
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Layer(NamedTuple):
    """What a layer weighs."""

    name: str
    """Its digest, or its name in the archive."""
    size: int
    """Bytes of its files."""
    lost: int
    """Bytes of files below it that it replaces or removes, and that the image carries on."""


class Allowance:
    """What all layers of an image may hold; they are read side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members, self._kept = MOST_NODES, MOST_KEPT

    def take(self, kept: int) -> None:
        """Count a member, of which `kept` bytes are wanted.

        Raises Error `image-too-large`, and tarfile.ReadError.
        """
        with self._lock:
            self._members -= 1
            self._kept -= kept
            if self._members < 0:
                raise Error("image-too-large", count=MOST_NODES)
            if self._kept < 0:
                raise tarfile.ReadError(cause("image-texts", size=size(MOST_KEPT)))

    def end(self) -> None:
        """Allow nothing more: whoever still reads ends at the next member."""
        with self._lock:
            self._members = 0


class Guarded:
    """The stream of a layer, as `tarfile` needs it; refuses what no honest archive asks."""

    def __init__(self, stream: IO[bytes] | Inflated, most: int | None) -> None:
        self._stream = stream
        self._most = most
        self.tell = stream.tell

    def seekable(self) -> bool:
        """Tell that it can go to an offset: `tarfile` asks."""
        return True

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises tarfile.ReadError."""
        if not 0 <= size <= MOST_AT_ONCE:
            raise tarfile.ReadError("a member's head is too long")
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        """Go to `offset`. Raises tarfile.ReadError."""
        if self._most is not None and offset > self._most:
            raise tarfile.ReadError("it is too large")
        return self._stream.seek(offset)


def read_layer(stream: IO[bytes], name: str, tree: Tree, number: int) -> Layer:
    """Change `tree` as the layer in `stream` says. Raises those of `read_members`."""
    return apply_members(read_members(stream, name, number, Allowance()), name, tree, number)


def read_members(
    stream: IO[bytes], name: str, number: int, allowance: Allowance
) -> Sequence[LayerMember]:
    """Return the members of the layer in `stream`, a tar that may be compressed.

    `number`: how many layers are below. Raises Error `image-unreadable`, `image-too-large`.
    """
    try:
        return [_member(info, kept, number) for info, kept in _members(stream, allowance)]
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, RecursionError) as error:
        raise Error("image-unreadable", file=name, cause=why(error)) from error


def why(error: Exception) -> object:
    """Return the cause of an `image-unreadable`, as a value of it."""
    said = error.args[0] if error.args else ""
    if isinstance(error, OSError):
        return error.strerror or said
    return said if isinstance(said, Cause) else cause("image-damaged", problem=str(error))


class LayerMember(NamedTuple):
    """A member of a layer."""

    path: str
    node: Node | None
    """None: a device, a socket."""
    linked: str
    """The path of what a hard link is another name of."""


def apply_members(rows: Sequence[LayerMember], name: str, tree: Tree, number: int) -> Layer:
    """Change `tree` as the members of a layer say. Raises Error `image-too-large`."""
    lost = total = 0
    for path in (row.path for row in rows):
        above, _, last = path.rpartition("/")
        if last == _OPAQUE:
            for each in tree.names(above):
                lost += size_of(tree.remove(f"{above}/{each}"), number)
        elif last.startswith(_WHITEOUT):
            lost += size_of(tree.remove(f"{above}/{last.removeprefix(_WHITEOUT)}"), number)
    for row in rows:
        if row.path.rpartition("/")[2].startswith(_WHITEOUT):
            continue
        node = tree.find(row.linked) if row.linked else row.node
        if node is None or (row.linked and not isinstance(node, File)):
            continue
        lost += size_of(tree.put(row.path, node), number)
        total += row.node.size if isinstance(row.node, File) else 0
    return Layer(name=name, size=total, lost=lost)


def _member(info: tarfile.TarInfo, content: bytes | None, number: int) -> LayerMember:
    path = _plain(info.name)
    if info.islnk():
        return LayerMember(path, None, _plain(info.linkname))
    node: Node | None = None
    if info.isdir():
        node = Folder()
    elif info.issym():
        node = info.linkname
    elif info.isreg():
        node = File(info.size, number, content)
    return LayerMember(path, node, "")


def _plain(name: str) -> str:
    return name.removeprefix("./").strip("/")


def _members(
    stream: IO[bytes], allowance: Allowance
) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    """Yield the members of a tar, each with its content where that is wanted."""
    with tarfile.TarFile(fileobj=cast("IO[bytes]", _unpacked(stream)), mode="r") as tar:
        while (info := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined] # it would keep all of them
            wanted = min(most_bytes(_plain(info.name)), info.size) if info.isreg() else 0
            allowance.take(wanted)
            file = tar.extractfile(info) if wanted else None
            yield info, file.read(wanted) if file else None


def _unpacked(stream: IO[bytes]) -> Guarded:
    """Return the tar in a stream; only so much of it where it is compressed."""
    start = stream.read(4)
    stream.seek(0)
    if start == _ZSTD:
        raise tarfile.ReadError(cause("image-zstd"))
    if start.startswith(_GZIP):
        return Guarded(Inflated(stream), MOST_UNPACKED)
    return Guarded(stream, None)
