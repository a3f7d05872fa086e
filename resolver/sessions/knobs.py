"""How the user of an application asks it for the GPU: rows of `applications.toml`.

Core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from packaging.utils import canonicalize_name

from ..versions import version as parse_version

KnobKind = Literal["argument", "option", "environment", "extra", "none"]


class Knob(NamedTuple):
    """What an application has for it."""

    application: str
    kind: KnobKind
    how: str
    """What a user writes; empty where there is nothing to write."""
    by_itself: bool
    """It asks for CUDA wherever the build has it."""
    checked: bool
    """This very version lies between those that were read."""


def find_knob(table: Mapping[str, Any], name: str, version: str) -> Knob | None:
    """Return the knob of a release of an application; None where nobody has read it.

    `table` is `applications.toml`. A release that is newer than what was read has the newest knob.
    """
    asked = parse_version(version)
    rows: Iterable[Mapping[str, str]] = (
        row for row in table["application"] if row["name"] == canonicalize_name(name)
    )
    fitting = [
        (since, row)
        for row in rows
        if (since := parse_version(row["since"])) and asked and since <= asked
    ]
    if not fitting or asked is None:
        return None
    _, row = max(fitting, key=lambda each: each[0])
    newest = parse_version(row["read"])
    return Knob(
        application=row["name"],
        kind=row["knob"],  # type: ignore[arg-type]
        how=row.get("how", ""),
        by_itself=row["asks"] == "by-itself",
        checked=newest is not None and asked <= newest,
    )
