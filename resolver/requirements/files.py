"""Requirements files with those that they name, read from the disk.

`packaging` reads a line that begins with a name. What an address or a path installs, pip-api
knows: from a wheel's name, or from what follows `#egg=`. It does not read the whole file, for it
judges markers by the Python that runs us, takes the file of `-c` for a distribution, and ends at
the first line that it cannot name.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from ..errors import Error
from .lines import expand_variables, files_named, is_place, logical_lines, without_options

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsFile:
    """A requirements file; bytes that are none in its encoding survive."""

    path: Path
    content: bytes
    mark: bytes
    encoding: str
    constraint: bool
    """It limits what is installed, and asks for nothing."""

    @property
    def text(self) -> str:
        """Return what stands in it, without the mark of its encoding."""
        return self.content[len(self.mark) :].decode(self.encoding, "surrogateescape")

    def encoded(self, text: str) -> bytes:
        """Return `text` as the bytes of such a file."""
        return self.mark + text.encode(self.encoding, "surrogateescape")

    def requirements(self, environ: Mapping[str, str]) -> Iterator[Requirement]:
        """Yield what it requires, for whatever target. Raises Error `requirements-unreadable`."""
        for number, line in logical_lines(self.text):
            text = expand_variables(line, environ)
            if is_place(text):
                yield from _installed_by(text)
            elif text:
                try:
                    yield Requirement(text)
                except InvalidRequirement:
                    cause = f"{number}: {without_options(line)}"
                    raise Error("requirements-unreadable", file=self.path, cause=cause) from None


def collect_files(paths: Iterable[Path]) -> dict[Path, RequirementsFile]:
    """Return requirements files and those that they name on this disk, each once.

    Raises Error `requirements-unreadable`.
    """
    found: dict[Path, RequirementsFile] = {}
    waiting = [(path, False) for path in paths]
    while waiting:
        named, constraint = waiting.pop(0)
        path = Path(os.path.normpath(named))
        if path in found:
            if not constraint:
                found[path] = replace(found[path], constraint=False)
            continue
        content = read_requirements_file(path)
        mark, encoding = next((row for row in _MARKS if content.startswith(row[0])), (b"", "utf-8"))
        found[path] = RequirementsFile(
            path=path, content=content, mark=mark, encoding=encoding, constraint=constraint
        )
        waiting[:0] = [
            (path.parent / row.name, constraint or row.constraint)
            for row in files_named(found[path].text)
            if "://" not in row.name
        ]
    return found


def read_requirements_file(path: Path) -> bytes:
    """Return a file's content. Raises Error `requirements-unreadable`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Error("requirements-unreadable", file=path, cause=error.strerror or error) from error


def _installed_by(place: str) -> Iterator[Requirement]:
    """Yield what an address or a path installs, where it tells name, and version of a wheel."""
    # pip_api would ask that interpreter for pip instead of ours.
    os.environ.pop("PIPAPI_PYTHON_LOCATION", None)
    import pip_api

    address, _, marker = place.partition(";")
    with tempfile.TemporaryDirectory() as folder:
        line = Path(folder, "line.txt")
        line.write_text(address.strip())
        try:
            found = pip_api.parse_requirements(line, include_invalid=True)
        except (pip_api.exceptions.PipError, ValueError):
            return
    for one in found.values():
        if not isinstance(one, pip_api.UnparsedRequirement):
            judged = f"; {marker}" if marker.strip() else ""
            with contextlib.suppress(InvalidRequirement):
                yield Requirement(f"{one.name}{one.specifier}{judged}")
