"""Write the plan as a lock for a team: one file for each group."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...data_files import read_data_file
from ...errors import Error
from ...lock.formats.dockerfile import dockerfile
from ...lock.formats.pylock import pylock
from ...lock.formats.requirements_txt import requirements
from ...lock.formats.uv import uv_lines
from ...lock.groups import Group, group_names
from ...lock.model import Lock
from ...messages.catalog import Language, load_texts
from ...project.model import FOLDER
from ...utils.files import check_place, write
from ...utils.foreign_text import clean_text
from .. import console
from ..lock_inputs import LockPlace, PlannedGroups, lock_builder, plan_group, write_companions
from ..requests import LockRequest

FORMATS: Mapping[str, Callable[[Lock, Sequence[str]], str]] = {
    "requirements": lambda lock, _: requirements(lock),
    "pylock": lambda lock, _: pylock(lock),
    "uv": lambda lock, _: uv_lines(lock),
    "dockerfile": lambda lock, files: dockerfile(lock, read_data_file("start.onnx"), files),
}
"""The files are those of `-r`, from the directory of the lock."""


def run(asked: LockRequest, environ: Mapping[str, str], language: Language) -> int:
    """Write the plan as a lock for a team.

    Raises as `plan_group` and `lock_groups`.
    """
    planned = plan_group(asked.preferred, environ, language)
    if isinstance(planned, int):
        return planned
    return lock_groups(planned, asked, environ, language)


def lock_groups(
    planned: PlannedGroups, asked: LockRequest, environ: Mapping[str, str], language: Language
) -> int:
    """Write a lock for each group.

    Raises Error `lock-needs-output` where several groups have no `-o`, `file-unwritable`, and
    those of `LockBuilder.lock` and of the format.
    """
    output = console.output_path(asked.output)
    if asked.format == "dockerfile" and asked.directory is None:
        folder = (output or Path(FOLDER)).parent / FOLDER
        directory = folder.as_posix()
        given = {**asked.plan.options, "directory": directory}
        asked = asked._replace(directory=directory, plan=asked.plan._replace(options=given))
    groups, options, matrix = planned
    if len(groups) > 1 and output is None:
        raise Error("lock-needs-output", count=len(groups))
    paths = _paths(output, groups)
    place = LockPlace(output, asked.directory, addresses=asked.format == "pylock")
    maker = lock_builder(asked.plan, environ, options, matrix, place)
    write_format, files = (
        FORMATS[asked.format],
        _required_files(asked.plan.install.requirement, maker.folder),
    )
    texts = [clean_text(write_format(maker.lock(group), files)) for group in groups]
    if asked.directory is not None and "://" not in asked.directory:
        write_companions(maker, groups, Path(asked.directory))
    for path, text in zip(paths, texts, strict=True):
        if path is not None:
            write(path, text)
    if asked.plan.json:
        rows = [
            {
                "release": f"{group.distribution} {group.version}",
                "file": None if path is None else str(path),
                "machines": [machine.name for machine in group.machines if machine.name],
                "text": text,
            }
            for group, path, text in zip(groups, paths, texts, strict=True)
        ]
        console.print_json({"schema": 1, "locks": rows})
    elif output is None:
        console.print_result(texts[0].removesuffix("\n"))
    else:
        for path in paths:
            console.print_notice(load_texts(language).label("written", file=path))
    return 0


def _required_files(named: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the requirements files of `-r`, and those that they include, from `folder`.

    Raises Error `requirements-unreadable`.
    """
    from ...requirements.files import collect_files

    files = [Path(file) for file in named if not file.endswith(".toml")]
    paths = (Path(os.path.relpath(path, folder)).as_posix() for path in collect_files(files))
    return tuple(path if path.startswith("..") else f"./{path}" for path in paths)


def _paths(output: Path | None, groups: Sequence[Group]) -> list[Path | None]:
    """Return where each group's lock goes: into `output`, or beside it with the group's name.

    Nothing is made before all of them can be written. Raises Error `file-unwritable`.
    """
    if output is None:
        return [None]
    check_place(output)
    paths = [output]
    if len(groups) > 1:
        paths = [_beside(output, name) for name in group_names(groups)]
    for path in paths:
        check_place(path)
    return [*paths]


def _beside(output: Path, name: str) -> Path:
    """Return `gpu.cuda13.txt` of `gpu.txt`. A name of PEP 751, `pylock.NAME.toml`, has no dots."""
    first, *more = output.stem.split(".")
    if first == "pylock":
        return output.with_name(f"pylock.{'-'.join([*more, *name.split('.')])}{output.suffix}")
    return output.with_name(f"{output.stem}.{name}{output.suffix}")
