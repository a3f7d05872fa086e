"""The user's requirements files, read and rewritten: those that `-r` names, and those they include.

Nothing is written before every file is read.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Error
from ..facts.project_tool import LOCKS
from ..utils.files import write
from .files import collect_files, read_requirements_file
from .overrides import exclude_cpu_build, project_tool
from .rewrite import Edit, RewrittenText, names_gpu_build, rewrite_requirements
from .rewrite_pyproject import rewrite_pyproject

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenFile:
    """A file before and after."""

    path: Path
    edits: tuple[Edit, ...]
    before: bytes
    after: bytes


def rewrite_files(
    files: Sequence[str], version: str, markers: Mapping[str, str], *, transitive: bool = False
) -> tuple[RewrittenFile, ...]:
    """Return the files that name a build of onnxruntime, with the pin of `version` in them.

    `markers` is the environment of the target; `transitive`: another distribution requires
    onnxruntime, which uv and PDM can be told to leave out. Raises Error `requirements-unreadable`.
    """
    paths = [Path(file) for file in files]
    rewritten = [
        _pyproject(path, version, markers, transitive=transitive)
        for path in paths
        if path.suffix == ".toml"
    ]
    texts = collect_files(path for path in paths if path.suffix != ".toml")
    with_gpu = {
        path
        for path, file in texts.items()
        if not file.constraint and names_gpu_build(file.text, markers)
    }
    for path, file in texts.items():
        elsewhere = not file.constraint and bool(with_gpu - {path})
        new = rewrite_requirements(file.text, version, markers, gpu_elsewhere=elsewhere)
        after = file.encoded(new.text)
        rewritten.append(
            RewrittenFile(path=path, edits=new.edits, before=file.content, after=after)
        )
    return tuple(file for file in rewritten if file.edits)


def write_rewritten(files: Sequence[RewrittenFile]) -> tuple[Path, ...]:
    """Write the files that change, each whole or not at all, and return their paths.

    Raises Error `file-unwritable`, and `file-changed` or `requirements-unreadable` for one that is
    not as it was read.
    """
    changed = [file for file in files if file.after != file.before]
    for file in changed:
        if read_requirements_file(file.path) != file.before:
            raise Error("file-changed", file=file.path)
    for file in changed:
        write(file.path, file.after)
    return tuple(file.path for file in changed)


def _pyproject(
    path: Path, version: str, markers: Mapping[str, str], *, transitive: bool
) -> RewrittenFile:
    content = read_requirements_file(path)
    try:
        new = rewrite_pyproject(content.decode("utf-8"), version, markers)
        locks = {lock for lock in LOCKS.values() if path.with_name(lock).is_file()}
        tool = project_tool(locks, new.text) if transitive else None
        if tool is not None:
            more = exclude_cpu_build(new.text, version, tool)
            edits = tuple(sorted((*new.edits, *more.edits), key=lambda edit: edit.line))
            new = RewrittenText(text=more.text, edits=edits)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Error("requirements-unreadable", file=path, cause=error) from error
    return RewrittenFile(path=path, edits=new.edits, before=content, after=new.text.encode())
