"""Mend a requirements file: the lines of onnxruntime become the right pin, all else stays.

What is not replaced is the same, byte for byte: comments, order, markers, extras, spaces and
line ends. `mending_toml` does the same for pyproject.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..versions import requirement
from .lines import logical_lines, without_options

BOTH = frozenset({GPU_BUILD, CPU_BUILD})
Done = Literal["replaced", "commented", "hashes", "address", "other", "odd"]
"""What becomes of a line: it is replaced, or commented out because another one names the GPU build.
Or it stays: there are hashes in the file, it names an address, another list of the project has the
GPU build, or it is written in a way that this program does not edit."""

_NAME = re.compile(
    r"(?P<lead>[ \t]*)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>[ \t]*\[[^\]\n]*\])?"
)
_REST = re.compile(
    r"(?P<versions>(?:(?![ \t]--|;|(?:^|(?<=[ \t]))#)(?:\\\r?\n|[^\r\n]))*)(?P<tail>.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A line about onnxruntime, and what becomes of it."""

    line: int
    """Its number, from 1."""
    before: str
    after: str | None
    """None where it stays as it is."""
    done: Done


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenText:
    """A file as it should be."""

    text: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    raw: str
    """With its continuation lines, and all line ends."""
    wanted: Requirement | None
    """None where it is written in a way that only pip understands."""


def pin(text: str, version: str) -> str | None:
    """Return the requirement `text` as a pin of the GPU build; None where it names an address.

    Extras and everything behind the version stay as they are written.
    """
    named = _NAME.match(text)
    assert named is not None  # noqa: S101 - it was parsed as a requirement
    rest = _REST.match(text[named.end() :])
    assert rest is not None  # noqa: S101 - every part is optional
    written = rest["versions"]
    if written.lstrip().startswith("@"):
        return None
    space = written[len(written.rstrip(" \t\\\r\n")) :]
    extras = named["extras"] or ""
    return f"{named['lead']}{GPU_BUILD}{extras}=={version}{space}{rest['tail']}"


def rewrite_requirements(
    text: str, version: str, markers: Mapping[str, str], *, gpu_elsewhere: bool = False
) -> RewrittenText:
    """Return a requirements file with every line of onnxruntime that applies pinned to `version`.

    Where a line names the GPU build, or one in a file that is read together with this one does
    (`gpu_elsewhere`), those of the CPU build are commented out: they share one folder.
    """
    parts = list(logical_lines(text))
    ours = {line.number: line for line in _ours(parts, markers)}
    gpu = gpu_elsewhere or any(_name(line) == GPU_BUILD for line in ours.values())
    hashes = re.search(r"\s--hash[ =]", text) is not None
    edits: list[Edit] = []
    pieces: list[str] = []
    for number, raw in parts:
        line = ours.get(number)
        after, done = (None, "replaced") if line is None else _edited(line, version, gpu, hashes)
        pieces.append(raw if after is None else after)
        if line is not None and after != raw:
            edits.append(
                Edit(
                    line=number,
                    before=_shown(raw),
                    after=None if after is None else _shown(after),
                    done=done,
                )
            )
    return RewrittenText(text="".join(pieces), edits=tuple(edits))


def names_gpu_build(text: str, markers: Mapping[str, str]) -> bool:
    """Tell whether a line of a requirements file that applies names the GPU build."""
    return any(_name(line) == GPU_BUILD for line in _ours(list(logical_lines(text)), markers))


def _edited(line: _Line, version: str, gpu: bool, hashes: bool) -> tuple[str | None, Done]:  # noqa: FBT001
    """Return the line as it should be, None to leave it, and what that means."""
    if line.wanted is None:
        return None, "odd"
    if hashes:
        return None, "hashes"
    if gpu and _name(line) == CPU_BUILD:
        commented = "".join(f"# {part}" for part in line.raw.splitlines(keepends=True))
        return commented, "commented"
    after = pin(line.raw, version)
    return after, "address" if after is None else "replaced"


def _shown(raw: str) -> str:
    return " ".join(raw.replace("\\\n", " ").replace("\\\r\n", " ").split())


def _name(line: _Line) -> str:
    return canonicalize_name(line.wanted.name) if line.wanted else ""


def _ours(parts: list[tuple[int, str]], markers: Mapping[str, str]) -> Iterator[_Line]:
    """Yield the lines that name a build of onnxruntime, but those that do not apply."""
    for number, raw in parts:
        named = _NAME.match(raw)
        if named is None or canonicalize_name(named["name"]) not in BOTH:
            continue
        wanted = requirement(without_options(raw))
        if wanted is None or is_in_force(wanted, markers, ""):
            yield _Line(number=number, raw=raw, wanted=wanted)
