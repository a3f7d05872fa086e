"""`data/symbols.toml`: the symbols that CUDA providers take from CUDA libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ortgpu_fix.binaries.library_names import is_cuda_library
from ortgpu_fix.guests.update.catalogue import taken
from ortgpu_fix.utils.toml_writer import Value, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ortgpu_fix.guests.update.catalogue import Catalogue
    from ortgpu_fix.guests.update.onnxruntime import ReadBuild


def tables(builds: Sequence[ReadBuild], catalogue: Catalogue) -> list[str]:
    """Return the `[[use]]` tables, then the `[[offer]]` tables."""
    return [*_uses(builds), *_offers(catalogue)]


def _uses(builds: Sequence[ReadBuild]) -> list[str]:
    """Return who uses what: symbols that the same builds use share a table."""
    users: dict[tuple[str, str, str], list[str]] = {}
    for build in builds:
        for library in build.library.imports:
            if is_cuda_library(library):
                for symbol in taken(build, library):
                    users.setdefault((build.platform, library, symbol), []).append(build.version)
    shared: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (platform, library, symbol), versions in users.items():
        shared.setdefault((platform, library, tuple(versions)), []).append(symbol)
    rows = sorted(shared.items(), key=lambda item: (item[0][0], item[0][1], sorted(item[1])))
    return [
        table(
            "use",
            {
                "platform": platform,
                "library": library,
                "builds": list(versions),
                "symbols": sorted(symbols),
            },
        )
        for (platform, library, versions), symbols in rows
    ]


def _offers(catalogue: Catalogue) -> list[str]:
    """Return per library of a distribution the used symbols that not every release has."""
    parts = []
    for (distribution, platform, library), offers in sorted(catalogue.exports.items()):
        every = frozenset().union(*(symbols for _, symbols in offers))
        partial: dict[str, Value] = {}
        for symbol in sorted(every):
            having = [version for version, symbols in offers if symbol in symbols]
            if len(having) < len(offers):
                partial[symbol] = {"first": having[0], "last": having[-1]}
        parts.append(
            table(
                "offer",
                {
                    "distribution": distribution,
                    "platform": platform,
                    "library": library,
                    "first": offers[0][0],
                    "last": offers[-1][0],
                    "always": len(every) - len(partial),
                    "partial": partial or None,
                },
            )
        )
    return parts
