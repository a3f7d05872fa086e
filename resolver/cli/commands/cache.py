"""What this program keeps for this user between runs: where, how much, and away with it."""

from __future__ import annotations

from collections.abc import Mapping

from ...apply.state_folder import remove_tree, size_of
from ...messages.catalog import Language, load_texts
from ...messages.sections import size as shown
from .. import console
from ..flags import CommandLine
from ..matrix_files import readings_folder, user_file, wheels_folder


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Do `cache dir`, `cache info` or `cache purge`.

    What uv and pip keep is theirs. The rows of `matrix --update` are data: they are shown, and
    `matrix --forget` drops them.
    """
    texts = load_texts("en" if arguments.json else language)
    named = {"wheels": wheels_folder(environ), "readings": readings_folder(environ)}
    folders = {name: folder for name, folder in named.items() if folder is not None}
    sizes = {name: size_of(folder) for name, folder in folders.items()}
    parent = folders["wheels"].parent if folders else None
    if parent is None:
        rows = [texts.label("cache-none")]
    elif arguments.argument == "dir":
        rows = [str(parent)]
    elif arguments.argument == "purge":
        had, sizes = sum(sizes.values()), {name: remove_tree(row) for name, row in folders.items()}
        freed = shown(had - sum(sizes.values()))
        rows = [texts.label("cache-purged", size=freed, folder=parent)]
    else:
        rows = [texts.label("cache-in", folder=parent)]
        rows += [texts.label(f"cache-{name}", size=shown(size)) for name, size in sizes.items()]
        own = user_file(environ)
        if own is not None and own.is_file():
            rows.append(texts.label("cache-matrix", file=own, size=shown(own.stat().st_size)))
    if arguments.json:
        folder = None if parent is None else str(parent)
        console.print_json({"schema": 1, "folder": folder, "bytes": sizes})
    else:
        console.print_result("\n".join(rows))
    return 0
