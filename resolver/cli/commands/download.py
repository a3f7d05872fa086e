"""Fetch everything the plan installs, for this machine or others, into a folder.

With `--libraries` what a program needs that is not Python: see `libraries`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...errors import Error
from ...index.download import download_all
from ...messages.catalog import Language, load_texts
from ...messages.sections import size as size_of
from .. import console
from ..flags import CommandLine
from ..lock_inputs import lock_builder, planned_groups, write_companions


def run(arguments: CommandLine, environ: Mapping[str, str], language: Language) -> int:
    """Fetch everything the plan installs, for this machine or others, into a folder.

    Raises Error `usage` without `-d`, `file-unwritable`, and those of `planned_groups`,
    `LockBuilder.files` and `download_all`.
    """
    if arguments.directory is None or "://" in arguments.directory:
        raise Error("usage", problem=Error("flag-alone", flag="download", partner="-d DIR"))
    if arguments.libraries:
        from . import libraries

        return libraries.run(arguments, environ, language)
    planned = planned_groups(arguments, environ, language)
    if isinstance(planned, int):
        return planned
    groups, options, matrix = planned
    into = Path(arguments.directory)
    maker = lock_builder(arguments, environ, options, matrix, None)
    wanted = [one for group in groups for one in maker.files(group)]
    urls = {one.wheel.file: one.url for one in wanted if one.url}
    wheels = list({one.wheel.file: one.wheel for one in wanted}.values())
    texts = load_texts("en" if arguments.json else language)
    with console.progress(texts, quiet=arguments.json) as progress:
        download_all(maker.index, wheels, into, progress, urls)
    made = write_companions(maker, groups, into)
    every = [*wheels, *(companion.wheel for companion in made)]
    rows = [(row.name, row.version, row.file, row.size, row.sha256) for row in every]
    if arguments.json:
        keys = ("name", "version", "file", "size", "sha256")
        files = [dict(zip(keys, row, strict=True)) for row in sorted(rows)]
        console.print_json({"schema": 1, "folder": str(into), "files": files})
    else:
        size = size_of(sum(row[3] for row in rows))
        console.print_notice(texts.label("downloaded", count=len(rows), size=size, folder=into))
    return 0
