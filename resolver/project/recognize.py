"""Find out what an environment is derived from: by the files around it, and by those of `-r`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from ..errors import Error
from ..facts.project_tool import LOCKS, PIPENV_NOTE, tool_of_folder
from ..requirements.files import collect_files, read_requirements_file
from ..utils.files import is_file
from ..utils.toml import tomllib
from .model import Project

PYPROJECT = "pyproject.toml"
PIPFILE = "Pipfile"
_NAMED = {"pixi": "pixi.toml", "tox": "tox.ini", "hatch": "hatch.toml", "pipenv": PIPFILE}
"""Tools that make environments from other files."""
_COMPILED = re.compile(r"^# +(?:pip-compile|uv pip compile)\b.*?([\w./-]+\.in)\b", re.MULTILINE)
"""In the head of what pip-tools or uv compiled: the command, and the file that a person wrote."""
_WHEELHOUSE = re.compile(r"(?P<name>.+)-[\w-]{8}-py\d")
"""The name of an environment that Poetry keeps elsewhere: `app-9TtSrW0h-py3.11`."""


def find_project(prefix: Path, cwd: Path, files: Sequence[str] = ()) -> Project | None:
    """Return what the environment at `prefix` is made from; None where nothing shows it.

    `files` are those of `-r`: they are what is meant. Raises Error `requirements-unreadable`.
    """
    if files:
        paths = [Path(file).resolve() for file in files]
        if paths[0].name == PYPROJECT:
            return _of_folder(paths[0].parent, "uv")
        return _of_requirements(paths)
    if tool_of_folder(str(prefix)) == "poetry":
        return _of_poetry_elsewhere(prefix, cwd)
    named = prefix / PIPENV_NOTE
    if is_file(named):
        return _of_folder(Path(named.read_text("utf-8", "replace").strip()), None)
    return _of_folder(prefix.parent.resolve(), None)


def _of_folder(folder: Path, otherwise: str | None) -> Project | None:
    """Return the project in `folder`: by its lock, or else by what pyproject.toml says."""
    tool = next((tool for tool, lock in LOCKS.items() if is_file(folder / lock)), None)
    path = folder / PYPROJECT
    document = _document(path) if is_file(path) else {}
    if tool is None:
        tables = _at(document, "tool")
        known = (*LOCKS, "hatch", "pixi", "tox")
        others = (tool for tool, file in _NAMED.items() if is_file(folder / file))
        tool = next((name for name in known if name in tables), None) or next(others, otherwise)
    if tool == "pipenv":
        return _of_pipfile(folder)
    if tool is None or (tool in {"uv", "poetry", "pdm"} and not document):
        return None
    root = _workspace_root(folder) if tool == "uv" else None
    if root is not None:
        folder, path, document = root, root / PYPROJECT, _document(root / PYPROJECT)
    paths = [path, *(_members(folder, document) if tool == "uv" else ())]
    lock = folder / LOCKS[tool] if tool in LOCKS else None
    contents = {each: read_requirements_file(each) for each in paths if is_file(each)}
    return Project(tool, folder, contents, lock)


def _of_pipfile(folder: Path) -> Project | None:
    path = folder / PIPFILE
    contents = {path: read_requirements_file(path)} if is_file(path) else {}
    return Project("pipenv", folder, contents, folder / LOCKS["pipenv"]) if contents else None


def _of_poetry_elsewhere(prefix: Path, cwd: Path) -> Project | None:
    """Return the project above `cwd` whose name an environment of Poetry's own folder has."""
    match = _WHEELHOUSE.match(prefix.name)
    for folder in (cwd.resolve(), *cwd.resolve().parents):
        if is_file(folder / PYPROJECT):
            document = _document(folder / PYPROJECT)
            tables = (_at(document, "project"), _at(document, "tool", "poetry"))
            names = {
                canonicalize_name(str(package["name"])) for package in tables if "name" in package
            }
            if match and canonicalize_name(match["name"]) in names:
                return _of_folder(folder, "poetry")
            return None
    return None


def compiled_from(file: Path) -> Path | None:
    """Return the file that a person wrote, where pip-tools or uv compiled `file`.

    Raises Error `requirements-unreadable`.
    """
    head = _COMPILED.search(read_requirements_file(file).decode("utf-8", "replace"))
    source = file.parent / head[1] if head else None
    return source if source is not None and is_file(source) else None


def _of_requirements(paths: Sequence[Path]) -> Project:
    """Return requirements files; where one was compiled, the file that a person wrote is meant."""
    source = compiled_from(paths[0])
    if source is not None:
        contents = {path: file.content for path, file in collect_files([source]).items()}
        return Project("pip-tools", source.parent, contents, paths[0])
    contents = {path: file.content for path, file in collect_files(paths).items()}
    return Project("requirements", paths[0].parent, contents)


def _workspace_root(folder: Path) -> Path | None:
    """Return the directory of the workspace that the project in `folder` is a member of.

    Source: https://docs.astral.sh/uv/concepts/projects/workspaces/.
    """
    for above in folder.parents:
        if is_file(above / PYPROJECT):
            document = _document(above / PYPROJECT)
            if _at(document, "tool", "uv", "workspace"):
                inside = PurePosixPath("/", folder.relative_to(above).as_posix())
                member = _has(document, "members", inside) and not _has(document, "exclude", inside)
                return above if member else None
    return None


def _members(root: Path, document: Mapping[str, Any]) -> list[Path]:
    """Return the pyproject.toml of each member of the workspace at `root`."""
    patterns = _at(document, "tool", "uv", "workspace").get("members", [])
    found = {
        path / PYPROJECT
        for pattern in patterns
        for path in root.glob(str(pattern))
        if is_file(path / PYPROJECT)
    }
    inside = {path: PurePosixPath("/", path.parent.relative_to(root).as_posix()) for path in found}
    return sorted(path for path in found if not _has(document, "exclude", inside[path]))


def _has(document: Mapping[str, Any], key: str, folder: PurePosixPath) -> bool:
    patterns = _at(document, "tool", "uv", "workspace").get(key, [])
    return any(isinstance(pattern, str) and folder.match(f"/{pattern}") for pattern in patterns)


def _document(path: Path) -> dict[str, Any]:
    """Return a pyproject.toml. Raises Error `requirements-unreadable`."""
    try:
        return tomllib.loads(read_requirements_file(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Error("requirements-unreadable", file=path, cause=error) from error


def _at(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for key in path:
        value = document.get(key)
        document = value if isinstance(value, dict) else {}
    return document
