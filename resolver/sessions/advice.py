"""What a user can do about sessions: the knob of the application, another command, an option.

Core. The knobs are rows of `applications.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from packaging.utils import canonicalize_name

from ..matrix.applications import application_of, read_application
from ..plan.reasons import Reason, reason
from ..versions import at_least
from .verdicts import CUDA, SessionGroup

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
    rows = [row for row in table["application"] if row["name"] == canonicalize_name(name)]
    row = application_of(map(read_application, rows), version)
    if row is None:
        return None
    return Knob(
        application=row.name,
        kind=row.knob,
        how=row.how,
        by_itself=row.asks == "by-itself",
        checked=at_least(row.read, version),
    )


def knobs_of(table: Mapping[str, Any], group: SessionGroup) -> tuple[Knob, ...]:
    """Return the knobs of the applications that made these sessions, the innermost first."""
    makers = [*filter(None, [group.made.maker]), *group.made.via]
    found = (find_knob(table, each.name, each.version) for each in makers if each.version)
    return tuple(knob for knob in found if knob is not None)


def advice_of(group: SessionGroup, knobs: Iterable[Knob]) -> tuple[Reason, ...]:
    """Return what to do about sessions, as codes of the table `advice`."""
    knobs = tuple(knobs)
    if group.verdict == "got-but-slow-options":
        return (reason("session-conv-search"),)
    if group.verdict in {"asked-other", "not-made"}:
        return ()
    if group.verdict == "asked-not-got":
        mistaken = "Unknown Provider Type" in "".join(group.first.errors)
        listed = (reason("session-providers"),) if mistaken else ()
        return (*listed, reason("session-mend"))
    if group.verdict == "asked-tensorrt-got-cuda":
        return (reason("session-tensorrt"),)
    if group.verdict == "got" or group.first.library != "onnxruntime":
        device = group.verdict == "never-asked"
        return (reason("session-device"),) if device else ()
    advice = []
    if CUDA not in group.first.available:
        advice.append(reason("session-build-without"))
    for knob in knobs:
        code = "session-by-itself" if knob.by_itself else f"session-knob-{knob.kind}"
        advice.append(reason(code, application=knob.application, how=knob.how))
    if not knobs:
        advice.append(reason("session-providers"))
    if knobs and all(knob.kind == "none" and not knob.by_itself for knob in knobs):
        advice.append(reason("session-way-out"))
    return tuple(advice)
