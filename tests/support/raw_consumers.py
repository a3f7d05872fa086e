"""Who uses CUDA on a machine, and what that forbids, asked of the raw tables.

It shares no code with the program: a part of `checker`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from packaging.version import InvalidVersion, Version

Row = Mapping[str, Any]


class User(NamedTuple):
    """A distribution that uses CUDA."""

    name: str
    cuda: str | None
    """The CUDA major; None: none, or several."""
    cudnn: str | None
    declares: bool
    """It requires the nvidia wheels that it uses, so that its requirements protect them."""


def users(
    installed: Mapping[str, Row],
    rows: Iterable[Row],
    kinds: Mapping[str, Row],
    requires: Mapping[str, Collection[str]],
    apart: Collection[str],
) -> list[User]:
    """Return who uses CUDA: by what was read of it, by what it requires, by its name.

    `rows` are those of consumers.toml for the platform, `kinds` the nvidia distributions,
    `requires` the nvidia wheels that each distribution requires; `apart` are others that count
    otherwise.
    """
    found = []
    for name, package in installed.items():
        own = [row for row in rows if row["name"] == name]
        if name in apart or name in kinds or (name.startswith("nvidia-") and not own):
            continue
        named = re.search(r"-cu(?:da)?(1[1-9])\d?x?(?:-|$)", name)
        suffix = named[1] if named else None
        read = next((row for row in own if _covers(row, package["version"])), None)
        wheels = requires.get(name, ())
        if read is not None and read["needs"]:
            found.append(User(name, read.get("cuda", suffix), read.get("cudnn"), declares=False))
        elif wheels:
            majors = {kinds[wheel]["cuda"] for wheel in wheels}
            cuda = majors.pop() if len(majors) == 1 else None
            cudnn = [wheel for wheel in sorted(wheels) if wheel.startswith("nvidia-cudnn")]
            have = [installed[wheel]["version"] for wheel in cudnn if wheel in installed]
            found.append(User(name, cuda, have[0].split(".")[0] if have else None, declares=True))
        elif suffix:
            found.append(User(name, suffix, None, declares=False))
        elif own and read is None:
            found.append(User(name, None, None, declares=True))
    return found


def _covers(row: Row, text: str) -> bool:
    try:
        return Version(row["first"]) <= Version(text) <= Version(row["last"])
    except InvalidVersion:
        return False


def majors_here(
    installed: Mapping[str, Row], libraries: Collection[str], kinds: Mapping[str, Row]
) -> set[str]:
    """Return the CUDA majors of which anything is here."""
    majors = {kinds[name]["cuda"] for name in installed if name in kinds}
    for library in libraries:
        having = {
            kind["cuda"]
            for kind in kinds.values()
            if any(library in row["libraries"] for row in kind.get("files", ()))
        }
        majors |= having if len(having) == 1 else set()
    return majors
