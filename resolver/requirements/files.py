"""The user's requirements files, with those that they include, and pyproject.toml: read, rewritten.

Nothing is written before every file is read.

`packaging` parses a line that begins with a name. pip-api tells what an address or a path installs,
from the name of a wheel or from `#egg=`. pip-api does not read the whole file, because it
evaluates markers for the Python that runs this program, takes the file of `-c` for a distribution,
and stops at the first line whose distribution it cannot name.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement

from ..errors import Error, cause
from ..facts.model import CPU_BUILD
from ..facts.project_tool import LOCKS
from ..utils.files import check_place, read_bounded, write
from ..versions import requirement
from .lines import (
    expand_variables,
    files_named,
    is_place,
    is_read_otherwise,
    logical_lines,
    wheel_at,
    without_options,
)
from .overrides import exclude_cpu_build, project_tool
from .rewrite import Edit, RewrittenText, names_gpu_build, rewrite_requirements
from .rewrite_pyproject import names_a_build, rewrite_pyproject, since
from .workspace import find_root

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"", "utf-8"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsFile:
    """A requirements file. Bytes that its encoding cannot decode are preserved."""

    path: Path
    content: bytes
    constraint: bool
    """It only limits versions, and requires nothing."""

    @property
    def _encoding(self) -> tuple[bytes, str]:
        """Return the byte order mark and the encoding."""
        return next(row for row in _MARKS if self.content.startswith(row[0]))

    @property
    def text(self) -> str:
        """Return the text without byte order mark."""
        mark, encoding = self._encoding
        return self.content[len(mark) :].decode(encoding, "surrogateescape")

    def encoded(self, text: str) -> bytes:
        """Return `text` in the encoding of this file."""
        mark, encoding = self._encoding
        return mark + text.encode(encoding, "surrogateescape")

    def requirements(self, environ: Mapping[str, str]) -> Iterator[Requirement]:
        """Yield every requirement, whatever its marker. Raises Error `requirements-unreadable`."""
        for number, line in logical_lines(self.text):
            text = expand_variables(line, environ)
            if is_place(text):
                yield from _installed_by(text)
            elif text:
                found = requirement(text)
                if found is None:
                    cause = f"{number}: {without_options(line)}"
                    raise Error("requirements-unreadable", file=self.path, cause=cause)
                yield _of_wheel(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenFile:
    """A file before and after."""

    path: Path
    edits: tuple[Edit, ...]
    before: bytes
    after: bytes


def collect_files(paths: Iterable[Path]) -> dict[Path, RequirementsFile]:
    """Return requirements files and the local files that they include, each once.

    Raises Error `requirements-unreadable`.
    """
    files: dict[Path, RequirementsFile] = {}
    waiting = [(path, False) for path in paths]
    while waiting:
        name, constraint = waiting.pop(0)
        path = Path(os.path.normpath(name))
        if path in files:
            if not constraint:
                files[path] = replace(files[path], constraint=False)
            continue
        content = read_requirements_file(path)
        files[path] = RequirementsFile(path=path, content=content, constraint=constraint)
        if is_read_otherwise(files[path].text):
            problem = cause("text-not-utf8")
            raise Error("requirements-unreadable", file=path, cause=problem)
        waiting[:0] = [
            (path.parent / included, constraint or limits)
            for included, limits in files_named(files[path].text)
            if "://" not in included
        ]
    return files


def read_requirements_file(path: Path) -> bytes:
    """Return a file's content. Raises Error `requirements-unreadable`."""
    try:
        return read_bounded(path)
    except OSError as error:
        raise Error("requirements-unreadable", file=path, cause=error.strerror) from error
    except ValueError as error:  # no file has such a name: it holds a null character
        raise Error("requirements-unreadable", file=path, cause=error) from error


def rewrite_files(
    files: Sequence[str],
    version: str,
    markers: Mapping[str, str],
    *,
    transitive: bool = False,
    python: str = "3.0",
) -> tuple[RewrittenFile, ...]:
    """Return the files that name a build of onnxruntime, with the pin of `version` in them.

    `markers` is the environment of the target; `transitive`: another distribution requires
    onnxruntime, which uv and PDM can be told to leave out; `python`: the oldest that `version` has
    a wheel for. Raises Error `requirements-unreadable`.
    """
    paths = [Path(file) for file in files]
    projects = [path for path in paths if path.suffix == ".toml"]
    roots = {path: find_root(path) for path in projects} if transitive else {}
    rewritten = [
        _pyproject(
            path,
            version,
            markers,
            python,
            transitive=transitive,
            member=roots.get(path) is not None,
        )
        for path in projects
    ]
    others = {*roots.values()} - {None, *(path.resolve() for path in projects)}
    rewritten += [_left_to(root, version, python) for root in sorted(filter(None, others))]
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


def check_writable(files: Iterable[RewrittenFile]) -> None:
    """Raise Error `file-unwritable` for a file that changes and cannot be written."""
    for file in files:
        if file.after != file.before:
            check_place(file.path)


def write_rewritten(files: Iterable[RewrittenFile]) -> dict[Path, Error]:
    """Write the files that change, each whole or not at all; return those that are not written.

    The reasons are `file-unwritable`, and `file-changed` or `requirements-unreadable` for one that
    is not as it was read.
    """
    changed = [file for file in files if file.after != file.before]
    return {file.path: error for file in changed if (error := _write(file)) is not None}


def _write(file: RewrittenFile) -> Error | None:
    try:
        if read_requirements_file(file.path) != file.before:
            return Error("file-changed", file=file.path)
        write(file.path, file.after)
    except Error as error:
        return error
    return None


def _pyproject(
    path: Path,
    version: str,
    markers: Mapping[str, str],
    python: str,
    *,
    transitive: bool,
    member: bool,
) -> RewrittenFile:
    content = read_requirements_file(path)
    try:
        text = content.decode("utf-8")
        oldest = since(text, python)
        new = rewrite_pyproject(text, version, markers, oldest)
        locks = {lock for lock in LOCKS.values() if path.with_name(lock).is_file()}
        tool = "uv" if member else project_tool(locks, new.text) if transitive else None
        if tool is not None:
            more = exclude_cpu_build(new.text, version, tool, oldest, member=member)
            edits = tuple(sorted((*new.edits, *more.edits), key=lambda edit: edit.line))
            new = RewrittenText(text=more.text, edits=edits)
        if not new.edits and not names_a_build(new.text):
            absent = Edit(line=1, before=CPU_BUILD, after=None, done="absent")
            new = RewrittenText(text=new.text, edits=(absent,))
    except ValueError as error:  # no UTF-8, no TOML, or a number that is too long for Python
        raise Error("requirements-unreadable", file=path, cause=error) from error
    return RewrittenFile(path=path, edits=new.edits, before=content, after=new.text.encode())


def _left_to(root: Path, version: str, python: str) -> RewrittenFile:
    """Return the root of a workspace with the override that it needs, which nobody asked to write.

    Raises Error `requirements-unreadable`.
    """
    content = read_requirements_file(root)
    text = content.decode("utf-8")
    edits = tuple(
        Edit(line=edit.line, before=f"{edit.before}: {edit.after}", after=None, done="root")
        for edit in exclude_cpu_build(text, version, "uv", since(text, python)).edits
        if edit.before.startswith("[tool")
    )
    return RewrittenFile(path=root, edits=edits, before=content, after=content)


def _of_wheel(found: Requirement) -> Requirement:
    """Return `NAME @ ADDRESS` with the version of the wheel at that address, where it tells one."""
    wheel = wheel_at(found.url or "")
    if wheel is None:
        return found
    marker = f"; {found.marker}" if found.marker else ""
    return Requirement(f"{found.name}=={wheel[1]}{marker}")


def _installed_by(place: str) -> Iterator[Requirement]:
    """Yield the name, and a wheel's version, that an address or a path installs, where it tells."""
    # pip_api would run the pip of that interpreter instead of ours.
    os.environ.pop("PIPAPI_PYTHON_LOCATION", None)
    import pip_api

    address, _, marker = place.partition(";")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "line.txt")
        try:
            file.write_text(address.strip())
            parsed = pip_api.parse_requirements(file)
        except (pip_api.exceptions.PipError, ValueError, RecursionError):
            return
    for row in cast("dict[str, Requirement]", parsed).values():
        condition = f"; {marker}" if marker.strip() else ""
        found = requirement(f"{row.name}{row.specifier}{condition}")
        if found is not None:
            yield found
