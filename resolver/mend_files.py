"""The files that `-r` names, and those they include: what should stand in them, and writing it.

Shell. Nothing is written before everything could be read.
"""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import Error
from .files import write
from .mending import Edit, includes, mend_requirements, names_gpu_build
from .mending_toml import mend_pyproject
from .occasion import Occasion
from .plan import Plan
from .situation import marker_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedFile:
    """A file, as it is and as it should be."""

    path: Path
    edits: tuple[Edit, ...]
    before: bytes
    after: bytes


def mended_by(plan: Plan, about: Occasion, arguments: argparse.Namespace) -> tuple[MendedFile, ...]:
    """Return the files that `-r` names with the pin of `plan` in them; none where nothing works.

    Raises Error `requirements-unreadable`.
    """
    if plan.release is None:
        return ()
    return mended(arguments.requirement, plan.release, marker_environment(about.facts))


def mended(
    files: Sequence[str], version: str, markers: Mapping[str, str]
) -> tuple[MendedFile, ...]:
    """Return the files that name a build of onnxruntime, with the pin of `version` in them.

    `markers` is the environment of the target. Raises Error `requirements-unreadable`.
    """
    found: list[MendedFile] = []
    texts: dict[Path, _Text] = {}
    for file in files:
        path = Path(file)
        if path.suffix == ".toml":
            found.append(_pyproject(path, version, markers))
        else:
            _collect(path, texts)
    naming = {path for path, text in texts.items() if names_gpu_build(text.text, markers)}
    for path, text in texts.items():
        made = mend_requirements(text.text, version, markers, gpu_elsewhere=bool(naming - {path}))
        found.append(
            MendedFile(
                path=path, edits=made.edits, before=text.content, after=text.encoded(made.text)
            )
        )
    return tuple(one for one in found if one.edits)


def write_mended(files: Sequence[MendedFile]) -> tuple[Path, ...]:
    """Write what has changed, each file whole or not at all, and return the paths.

    Raises Error `file-unwritable`, and `file-changed` or `requirements-unreadable` for one that is
    not as it was read.
    """
    changed = [file for file in files if file.after != file.before]
    for file in changed:
        if _read(file.path) != file.before:
            raise Error("file-changed", file=file.path)
    for file in changed:
        write(file.path, file.after)
    return tuple(file.path for file in changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A file's text; bytes that are none in its encoding survive."""

    content: bytes
    mark: bytes
    encoding: str

    @property
    def text(self) -> str:
        return self.content[len(self.mark) :].decode(self.encoding, "surrogateescape")

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, "surrogateescape")


def _collect(path: Path, texts: dict[Path, _Text]) -> None:
    """Read a requirements file and those that it includes, each once."""
    path = Path(os.path.normpath(path))
    if path in texts:
        return
    content = _read(path)
    mark, encoding = next((row for row in _MARKS if content.startswith(row[0])), (b"", "utf-8"))
    texts[path] = _Text(content=content, mark=mark, encoding=encoding)
    for name in includes(texts[path].text):
        if "://" not in name:
            _collect(path.parent / name, texts)


def _pyproject(path: Path, version: str, markers: Mapping[str, str]) -> MendedFile:
    content = _read(path)
    try:
        made = mend_pyproject(content.decode("utf-8"), version, markers)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Error("requirements-unreadable", file=path, cause=error) from error
    return MendedFile(path=path, edits=made.edits, before=content, after=made.text.encode())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Error("requirements-unreadable", file=path, cause=error.strerror or error) from error
