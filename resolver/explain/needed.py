"""What a program that brings onnxruntime itself needs beside it: which files, and who has them."""

from __future__ import annotations

from collections.abc import Sequence

from .failures import NeededFiles
from .libraries import LibraryName


def needed_files(
    rows: Sequence[NeededFiles], named: Sequence[LibraryName], release: str | None
) -> dict[str, str]:
    """Return `files` and `wheels` for the libraries that a log names, and for its `release`.

    Where neither tells the CUDA major, those of every major are returned, each with its releases.
    """
    names = [library.name.lower() for library in named]
    windows = any(name.endswith(".dll") for name in names)
    linux = any(".so" in name for name in names) and not windows
    chosen = _chosen(rows, named, release)
    files = [
        "; ".join(([row.windows] if not linux else []) + ([row.linux] if not windows else []))
        for row in chosen
    ]
    if len(chosen) == 1:
        return {"files": files[0], "wheels": chosen[0].wheels}
    heads = [f"CUDA {row.cuda} (onnxruntime {row.releases}): " for row in chosen]
    return {
        "files": "; ".join(head + text for head, text in zip(heads, files, strict=True)),
        "wheels": "; ".join(f"CUDA {row.cuda}: {row.wheels}" for row in chosen),
    }


def _chosen(
    rows: Sequence[NeededFiles], named: Sequence[LibraryName], release: str | None
) -> Sequence[NeededFiles]:
    cuda = {library.major for library in named if library.part == "cuda"}
    cudnn = {library.major for library in named if library.part == "cudnn"}
    fits = [row for row in rows if release is not None and row.releases.contains(release)]
    for known in (
        [row for row in rows if row.cuda in cuda],
        [row for row in fits if not cudnn or row.cudnn in cudnn],
        [row for row in rows if row.cudnn in cudnn],
    ):
        if known:
            return known
    return rows
