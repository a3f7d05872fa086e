"""The user's requirements files, with those that they include, and pyproject.toml: read.

`packaging` parses a line that begins with a name. pip-api finds what an address or a path installs,
from the name of a wheel or from `#egg=`. pip-api does not read the whole file, because it
evaluates markers for the Python that runs this program, takes the file of `-c` for a distribution,
and stops at the first line whose distribution it cannot name.
"""

from __future__ import annotations

import codecs
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import cast

from packaging.requirements import Requirement

from ..errors import Error, cause
from ..utils.files import read_bounded
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


def _of_wheel(found: Requirement) -> Requirement:
    """Return `NAME @ ADDRESS` with the version of the wheel at that address, where it has one."""
    wheel = wheel_at(found.url or "")
    if wheel is None:
        return found
    marker = f"; {found.marker}" if found.marker else ""
    return Requirement(f"{found.name}=={wheel[1]}{marker}")


def _installed_by(place: str) -> Iterator[Requirement]:
    """Yield the name, and a wheel's version, that an address or a path installs, where it says."""
    # Imported, it runs `python -m pip --version` in the current folder: a checkout's own `pip.py`.
    version = ModuleType("pip_api._version")
    version.__dict__["version"] = lambda: "0"  # which nothing here needs
    sys.modules.setdefault(version.__name__, version)
    import pip_api

    address, _, marker = place.partition(";")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "line.txt")
        try:
            file.write_text(address.strip())
            parsed = pip_api.parse_requirements(file)
        except (pip_api.exceptions.PipError, ValueError):
            return
    for row in cast("dict[str, Requirement]", parsed).values():
        condition = f"; {marker}" if marker.strip() else ""
        found = requirement(f"{row.name}{row.specifier}{condition}")
        if found is not None:
            yield found
