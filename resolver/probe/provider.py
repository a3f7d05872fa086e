"""Read what an installed CUDA provider of onnxruntime says of itself, without loading it.

The headers of its GPU code are walked from one to the next, so a file of 400 MB takes about a tenth
of a second.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

from ..binaries import elf, fatbin, gpu_targets, library_names, pe
from ..binaries.native import Content
from ..facts.model import Provider
from .libraries import find_text

PROVIDERS = ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")


def read_provider(folder: Path) -> Provider | None:
    """Return what the provider in the folder `onnxruntime` says; None where it is unreadable.

    A folder without a provider gives one that links nothing.
    """
    path = next((path for name in PROVIDERS if (path := folder / "capi" / name).is_file()), None)
    if path is None:
        return Provider()
    module = find_text(folder / "__init__.py") or ""
    provider = read_library(path)
    return provider and provider._replace(preload_dlls="def preload_dlls" in module)


def read_plugin(folder: Path, libraries: Sequence[str]) -> Provider | None:
    """Return what a plugin of onnxruntime says; None where it is unreadable, or there is none.

    `libraries` are the paths, from `folder`, of all libraries of its distribution: what it links of
    those it brings itself, if under the name by which the loader looks for it. NVIDIA's wheels of
    TensorRT-RTX 0.5.0 for Linux bring a `libcudart.so.13.4.36` that nothing finds.
    """
    names = [path.rpartition("/")[2] for path in libraries]
    path = next((path for path in libraries if "onnxruntime_providers_" in path), None)
    provider = read_library(folder / path) if path else None
    if provider is None:
        return None
    links = (link for link in provider.links if link not in names)
    return provider._replace(links=tuple(links))


def read_library(path: Path) -> Provider | None:
    """Return what the library of a provider says; None where it is unreadable."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _dll(data) if path.suffix == ".dll" else _shared_object(data)
    except (OSError, ValueError):  # a BinaryError, or an empty file
        return None


def _shared_object(data: Content) -> Provider:
    links = elf.read(data).links
    texts = (elf.find_section(data, name) for name in (".text", ".rodata"))
    mentions = [library_names.sonames_in(data[part]) for part in texts if part]
    return _provider(data, links, mentions, elf.find_section(data, ".nv_fatbin"))


def _dll(data: Content) -> Provider:
    native = pe.read(data)
    texts = pe.find_section(data, ".rdata")
    mentions = [library_names.dll_names_in(data[texts])] if texts else []
    provider = _provider(data, native.links, mentions, pe.find_section(data, ".nv_fatb"))
    return provider._replace(toolset=pe.toolset(data))


def _provider(
    data: Content, links: tuple[str, ...], mentions: list[frozenset[str]], code: slice | None
) -> Provider:
    linked = tuple(name for name in links if library_names.is_cuda_library(name))
    found = fatbin.entries(data, code.start, code.stop) if code else ()
    sass, ptx = gpu_targets.supported(fatbin.count_groups(found))
    named = filter(library_names.is_cuda_library, frozenset().union(*mentions))
    return Provider(
        links=tuple(sorted(linked)), names=tuple(sorted({*named} - {*linked})), sass=sass, ptx=ptx
    )
