"""Rewrite a requirements file: the lines of onnxruntime become the right pin.

Everything else stays the same, byte for byte: comments, order, markers, extras, spaces and line
ends. `rewrite_pyproject` does the same for pyproject.toml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.utils import canonicalize_name

from ..facts.markers import is_in_force
from ..facts.model import CPU_BUILD, GPU_BUILD
from ..versions import requirement
from .lines import logical_lines, without_options

BOTH = frozenset({GPU_BUILD, CPU_BUILD})
Done = Literal[
    "replaced", "commented", "hashes", "address", "other", "odd", "added", "root", "absent"
]
"""What becomes of a line: it is replaced, or commented out because another one names the GPU build.
Or it stays: there are hashes in the file, it names an address, another list of the project has the
GPU build, or it is written in a way that this program does not edit. Or it is a new line, or one
for the root of the workspace, which was not named. Or no line of the file names onnxruntime."""

_REQUIREMENT = re.compile(
    r"(?P<lead>[ \t]*)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>[ \t]*\[[^\]\n]*\])?"
    r"(?P<versions>(?:(?![ \t]--|;|(?<=[ \t])#)(?:\\\r?\n|[^\r\n]))*)(?P<tail>.*)",
    re.DOTALL,
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
    """A file's new text."""

    text: str
    edits: tuple[Edit, ...]


def pin(text: str, version: str) -> str | None:
    """Return the requirement `text` as a pin of the GPU build; None where it names an address.

    Extras and everything behind the version stay as they are written.
    """
    match = _REQUIREMENT.match(text)
    assert match is not None  # noqa: S101 - it was parsed as a requirement
    written = match["versions"]
    if written.lstrip().startswith("@"):
        return None
    space = written[len(written.rstrip(" \t\\\r\n")) :]
    extras = match["extras"] or ""
    return f"{match['lead']}{GPU_BUILD}{extras}=={version}{space}{match['tail']}"


def rewrite_requirements(
    text: str, version: str, markers: Mapping[str, str], *, gpu_elsewhere: bool = False
) -> RewrittenText:
    """Return a requirements file with every line of onnxruntime that applies pinned to `version`.

    Where a line names the GPU build, or one in a file that is read together with this one does
    (`gpu_elsewhere`), those of the CPU build are commented out: they share one folder.
    """
    lines = [(number, raw, _build(raw, markers)) for number, raw in logical_lines(text)]
    gpu = gpu_elsewhere or any(build == GPU_BUILD for _, _, build in lines)
    hashes = re.search(r"\s--hash[ =]", text) is not None
    edits: list[Edit] = []
    pieces: list[str] = []
    for number, raw, build in lines:
        after: str | None = raw
        if build is not None:
            after, done = _edited(raw, build, version, gpu=gpu, hashes=hashes)
            if after != raw:
                shown = after and _on_one_line(after)
                edits.append(Edit(line=number, before=_on_one_line(raw), after=shown, done=done))
        pieces.append(after or raw)
    return RewrittenText(text="".join(pieces), edits=tuple(edits))


def names_gpu_build(text: str, markers: Mapping[str, str]) -> bool:
    """Return whether a line of a requirements file that applies names the GPU build."""
    return any(_build(raw, markers) == GPU_BUILD for _, raw in logical_lines(text))


def _edited(
    raw: str, build: str, version: str, *, gpu: bool, hashes: bool
) -> tuple[str | None, Done]:
    """Return the new text of a line, None where it stays, and what that means."""
    if not build:
        return None, "odd"
    if hashes:
        return None, "hashes"
    if gpu and build == CPU_BUILD:
        return "".join(f"# {part}" for part in raw.splitlines(keepends=True)), "commented"
    after = pin(raw, version)
    return after, "address" if after is None else "replaced"


def _on_one_line(raw: str) -> str:
    return " ".join(raw.replace("\\\n", " ").replace("\\\r\n", " ").split())


def _build(raw: str, markers: Mapping[str, str]) -> str | None:
    """Return the build of onnxruntime that a line names; None: neither, or it does not apply.

    Empty where the line is written in a way that only pip understands.
    """
    match = _REQUIREMENT.match(raw)
    written = canonicalize_name(match["name"]) if match else ""
    wanted = requirement(without_options(raw))
    if wanted is None:
        return "" if written in BOTH else None
    name = canonicalize_name(wanted.name)
    if name not in BOTH or not is_in_force(wanted, markers, ""):
        return None
    return name if name == written else ""
