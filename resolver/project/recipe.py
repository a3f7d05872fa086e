"""What changes in the files of a project: the lines, and the two wheels beside its lock."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tomlkit import TOMLDocument

from ..errors import Error
from ..requirements.files import RequirementsFile
from .model import FOLDER, WRITTEN, FileChange, Project, Wanted
from .pyproject_recipe import (
    for_pdm,
    for_pipenv,
    for_poetry,
    for_uv,
    needs_python,
    parse_pyproject,
    requires_build,
    written,
)
from .requirements_recipe import edited_requirements


def project_changes(project: Project, wanted: Wanted) -> tuple[FileChange, ...]:
    """Return the files of `project` that change, its lock left out; none where it is as it should.

    Raises Error `requirements-unreadable` for a file that cannot be parsed, `project-odd` for one
    that this program does not edit, and those of the recipes.
    """
    if project.tool not in WRITTEN:
        return ()
    listed = project.tool in {"requirements", "pip-tools"}
    edit = _edited_requirements if listed else _edited_pyprojects
    edited = edit(project, wanted)
    changes = [
        FileChange(path, project.files[path], after)
        for path, after in edited.items()
        if project.files[path] != after
    ]
    return tuple(changes)


def wheel_paths(project: Project, wanted: Wanted) -> dict[Path, bytes]:
    """Return the two wheels as files, which are to be beside the lock."""
    folder = project.root / FOLDER
    return {folder / wheel.file: wheel.content for wheel in wanted.wheels}


def origin_of(tool: str, path: Path, content: bytes) -> bytes:
    """Return what `tool` notes of the wheel at `path` when it installs it (PEP 610).

    Its next sync compares that: uv and Poetry have a `+` as it is and no hash, PDM the opposite.
    """
    url, about = path.as_uri().replace("%2B", "+"), {}
    if tool == "pdm":
        url, about = path.as_uri(), {"hash": f"sha256={hashlib.sha256(content).hexdigest()}"}
    return json.dumps({"url": url, "archive_info": about}).encode()


def _edited_pyprojects(project: Project, wanted: Wanted) -> dict[Path, bytes]:
    """Return every pyproject.toml with the lines of the project's tool."""
    texts = {path: _decoded(path, content) for path, content in project.files.items()}
    documents = {path: _parsed(path, text) for path, text in texts.items()}
    root, *_ = documents
    oldest = (
        needs_python(document, wanted.python) for document in documents.values() if wanted.python
    )
    wanted = wanted._replace(python=next(filter(None, oldest), None))
    having = [path for path, document in documents.items() if requires_build(document, wanted)]
    named = [path for path, document in documents.items() if "project" in document]
    home = next(iter([*having, *named]), root)
    edited = {}
    for path, document in documents.items():
        try:
            if project.tool == "poetry":
                for_poetry(document, wanted)
            elif project.tool == "pdm":
                for_pdm(document, wanted)
            elif project.tool == "pipenv":
                for_pipenv(document, wanted)
            else:
                for_uv(document, wanted, adds=path == home, sources=path == root)
            after = written(document, texts[path])
        except (TypeError, ValueError) as error:
            raise Error("project-odd", file=path) from error
        edited[path] = after.encode()
    return edited


def _edited_requirements(project: Project, wanted: Wanted) -> dict[Path, bytes]:
    """Return every requirements file; the first gets the lines of the wheels."""
    first, *_ = project.files
    edited = {}
    for path, content in project.files.items():
        file = RequirementsFile(path=path, content=content, constraint=False)
        if (path.parent != project.root) and path == first:
            raise Error("project-odd", file=path)
        edited[path] = file.encoded(edited_requirements(file.text, wanted, adds=path == first))
    return edited


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except ValueError as error:
        raise Error("requirements-unreadable", file=path, cause=error) from error


def _parsed(path: Path, text: str) -> TOMLDocument:
    try:
        return parse_pyproject(text)
    except ValueError as error:
        raise Error("requirements-unreadable", file=path, cause=error) from error
