"""What this program keeps for this user between runs: where, how much, and away with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os.path import exists, islink
from pathlib import Path

from ...apply.state_folder import remove_tree, size_of
from ...messages.catalog import Language, Texts, load_texts
from ...messages.sections import size as shown
from ...utils.files import is_file
from .. import console
from ..matrix_files import cache_folder, is_own_place, user_file
from ..requests import CacheRequest


def run(asked: CacheRequest, environ: Mapping[str, str], language: Language) -> int:
    """Do `cache dir`, `cache info` or `cache purge`.

    The wheels are in uv's cache, which is uv's. The rows of `matrix --update` are data: they are
    shown, and `matrix --forget` drops them.
    """
    texts = load_texts("en" if asked.json else language)
    parent = cache_folder(environ)
    folders = {} if parent is None else {"readings": parent / "readings"}
    sizes = {name: size_of(folder) for name, folder in folders.items()}
    if parent is None:
        rows = [texts.label("cache-none")]
    elif asked.words == ("dir",):
        rows = [str(parent)]
    elif asked.words == ("purge",):
        real = [folder for folder in folders.values() if not _is_link(folder)]
        had = sum(map(size_of, real))
        rows = [row for folder in folders.values() for row in _purge(folder, texts)]
        sizes = {name: size_of(folder) for name, folder in folders.items()}
        freed = shown(had - sum(map(size_of, real)))
        rows = [texts.label("cache-purged", size=freed, folder=parent), *rows]
    else:
        rows = [texts.label("cache-in", folder=parent)]
        rows += [texts.label(f"cache-{name}", size=shown(size)) for name, size in sizes.items()]
        if not all(map(is_own_place, folders.values())):
            rows.append(texts.label("cache-not-own", folder=parent))
        own = user_file(environ)
        if own is not None and is_file(own):
            rows.append(texts.label("cache-matrix", file=own, size=shown(own.stat().st_size)))
    if asked.json:
        folder = None if parent is None else str(parent)
        console.print_json({"schema": 1, "folder": folder, "bytes": sizes})
        for row in rows[1:] if asked.words == ("purge",) else ():
            console.print_notice(row)
    else:
        console.print_result("\n".join(rows))
    return 0


def _is_link(folder: Path) -> bool:
    return islink(folder)  # noqa: PTH114 - False also without the right to look


def _purge(folder: Path, texts: Texts) -> Iterator[str]:
    """Remove `folder`, and yield what has to be said of that: no link is followed.

    What belongs to another user is left to its owner.
    """
    if _is_link(folder):
        target = folder.resolve()
        try:
            folder.unlink()
        except OSError as error:
            yield texts.label("cache-stays", folder=folder, cause=error.strerror or str(error))
        else:
            yield texts.label("cache-link-removed", folder=folder, target=target)
    elif not is_own_place(folder):
        if exists(folder):  # noqa: PTH110 - False also without the right to look
            yield texts.label("cache-of-other", folder=folder)
    elif left := remove_tree(folder):
        yield texts.label("cache-stays", folder=folder, cause=shown(left))
