"""What CUDA weighs in an image, by folder and layer: what is there twice, and used by nobody."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from .tree import File, Tree

_LIBRARY = re.compile(
    r"(lib(?:cublas|cublasLt|cudart|cudnn|cufft|cufftw|cupti|curand|cusolver|cusolverMg|cusparse"
    r"|cusparseLt|nccl|npp[a-z]*|nvJitLink|nvinfer|nvjpeg|nvrtc|nvrtc-builtins)(?:_\w+)?\.so\.\d+)"
    r"[.\d]*"
)
_TOOLKIT = re.compile(r"/usr/local/cuda[^/]*")


class Holding(NamedTuple):
    """A folder with CUDA libraries, or a whole toolkit."""

    path: str
    layers: tuple[tuple[int, int], ...]
    """The layers that brought it, from 0, each with the bytes."""
    used: bool
    """An environment uses it."""
    twice: tuple[str, ...]
    """Its libraries that lie in another folder too: `libcudnn.so.9`."""
    twice_size: int
    """Bytes of those."""

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(size for _, size in self.layers)


def holdings(tree: Tree, sites: Collection[str], used: Iterable[str]) -> tuple[Holding, ...]:
    """Return what holds CUDA, the largest first.

    `sites`: the folders of the environments' packages; `used`: the paths of the libraries elsewhere
    that they use.
    """
    real = {tree.real(path) for path in used}
    sizes: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    libraries: defaultdict[str, dict[str, int]] = defaultdict(dict)
    in_use = set()
    counted = set()
    for place, path, name, file in _cuda_files(tree):
        if id(file) not in counted:
            counted.add(id(file))
            sizes[place][file.layer] += file.size
        if library := _LIBRARY.fullmatch(name):
            libraries[place][library[1]] = file.size
        if path in real or any(place.startswith(f"{site}/") for site in sites):
            in_use.add(place)
    found = []
    for place, layers in sizes.items():
        others = set().union(*(names for other, names in libraries.items() if other != place))
        twice = tuple(sorted(others & libraries[place].keys()))
        size = sum(libraries[place][name] for name in twice)
        found.append(Holding(place, tuple(sorted(layers.items())), place in in_use, twice, size))
    return tuple(sorted(found, key=lambda row: (-row.size, row.path)))


def _cuda_files(tree: Tree) -> Iterator[tuple[str, str, str, File]]:
    """Yield each file of CUDA: the folder that it counts to, its path and name, and itself."""
    for folder, nodes in tree.folders():
        toolkit = _TOOLKIT.match(folder)
        for name, node in nodes.items():
            if isinstance(node, File) and (toolkit or _LIBRARY.fullmatch(name)):
                yield toolkit[0] if toolkit else folder, f"{folder}/{name}", name, node
