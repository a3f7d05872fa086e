"""Fetch everything the plan installs, for this machine or others, into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...index.download import download_all
from ...messages.catalog import Language, load_texts
from ...messages.sections import size as size_of
from .. import console
from ..flags import lacking
from ..lock_inputs import LockPlace, PlannedGroups, lock_builder, plan_group, write_companions
from ..requests import DownloadRequest


def run(asked: DownloadRequest, environ: Mapping[str, str], language: Language) -> int:
    """Fetch everything the plan installs, for this machine or others, into a folder.

    Raises as `plan_group` and `download_groups`.
    """
    _directory(asked.directory)  # a mistake is reported before anything takes time
    planned = plan_group(asked.plan, environ, language)
    if isinstance(planned, int):
        return planned
    return download_groups(planned, asked, environ, language)


def _directory(directory: str | None) -> Path:
    """Return where the wheels go. Raises Error `usage` without `-d`."""
    if directory is None or "://" in directory:
        raise lacking("download", "-d DIR", "download -d wheels")
    return Path(directory)


def download_groups(
    planned: PlannedGroups, asked: DownloadRequest, environ: Mapping[str, str], language: Language
) -> int:
    """Fetch the wheels of all groups.

    Raises Error `usage` without `-d`, `file-unwritable`, and those of `LockBuilder.files` and
    `download_all`.
    """
    into = _directory(asked.directory)
    groups, options, matrix = planned
    maker = lock_builder(
        asked.plan, environ, options, matrix, LockPlace(companions=asked.directory)
    )
    wanted = [one for group in groups for one in maker.files(group)]
    pinned = list({one.wheel.file: one for one in wanted}.values())
    texts = load_texts("en" if asked.plan.json else language)
    with console.progress(texts, quiet=asked.plan.json) as progress:
        download_all(maker.index, pinned, into, progress)
    made = write_companions(maker, groups, into)
    every = [*(one.wheel for one in pinned), *(companion.wheel for companion in made)]
    wheels = [(wheel.name, wheel.version, wheel.file, wheel.size, wheel.sha256) for wheel in every]
    if asked.plan.json:
        keys = ("name", "version", "file", "size", "sha256")
        files = [dict(zip(keys, wheel, strict=True)) for wheel in sorted(wheels)]
        console.print_json({"schema": 1, "folder": str(into), "files": files})
    else:
        size = size_of(sum(wheel[3] for wheel in wheels))
        console.print_notice(texts.label("downloaded", count=len(wheels), size=size, folder=into))
    return 0
