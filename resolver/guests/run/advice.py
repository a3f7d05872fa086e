"""What a user can do about sessions: the knob of the application, another command, an option.

Core. What a session asked for decides; the rows of `applications.toml` add an application's knob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from packaging.utils import canonicalize_name

from ...matrix.applications import application_of, read_application
from ...plan.reasons import Reason, reason
from ...versions import at_least
from .verdicts import CUDA, SessionGroup, asked_names

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


def find_knob(table: Mapping[str, Any], name: str, version: str, file: str = "") -> Knob | None:
    """Return the knob of a release of an application; None where nobody has read it.

    `table` is `applications.toml`. A release that is newer than what was read has the newest knob.
    A distribution of another name that has the row's `file` is the same application: fastembed-gpu.
    """
    file = file.replace("\\", "/")
    rows = [
        row
        for row in table["application"]
        if row["name"] == canonicalize_name(name) or file.endswith(f"/{row['file']}")
    ]
    row = application_of(map(read_application, rows), version)
    if row is None:
        return None
    return Knob(
        application=name,
        kind=row.knob,
        how=row.how,
        by_itself=row.asks == "by-itself",
        checked=at_least(row.read, version),
    )


def knobs_of(table: Mapping[str, Any], group: SessionGroup) -> tuple[Knob, ...]:
    """Return the knobs of the applications that made these sessions, the innermost first."""
    makers = [*filter(None, [group.made.maker]), *group.made.via]
    found = (
        find_knob(table, each.name, each.version, each.frame.file)
        for each in makers
        if each.version
    )
    return tuple(knob for knob in found if knob is not None)


class Packed(NamedTuple):
    """An archive, as shiv makes it, that has its packages within: no environment has them."""

    archive: str
    python: str
    """The version of its Python: `3.11`."""


def advice_of(
    group: SessionGroup, knobs: Iterable[Knob], packed: Packed | None = None
) -> tuple[Reason, ...]:
    """Return what to do about sessions, as codes of the table `advice`.

    `packed`: the archive that has their onnxruntime.
    """
    knobs = tuple(knobs)
    if group.verdict == "got-but-slow-options":
        return (reason("session-conv-search"),)
    if group.verdict in {"asked-other", "not-made"}:
        return ()
    if group.verdict == "asked-not-got":
        mistaken = "Unknown Provider Type" in "".join(group.first.errors)
        listed = (reason("session-providers"),) if mistaken else ()
        if packed is None:
            return (*listed, reason("session-mend"))
        packs = group.not_in_build or not group.why or any(each.fixable for each in group.why)
        return (*listed, *([_packed(packed)] if packs else []))
    if group.verdict == "asked-tensorrt-got-cuda":
        return (reason("session-tensorrt"),)
    if group.verdict == "got":
        return ()
    if group.first.library != "onnxruntime":
        return (reason("session-device"),)
    return tuple(_ways_to_ask(group, knobs, packed))


def _packed(packed: Packed) -> Reason:
    return reason("session-packed", archive=packed.archive, python=packed.python)


def _ways_to_ask(
    group: SessionGroup, knobs: Sequence[Knob], packed: Packed | None
) -> Iterator[Reason]:
    """Say how a session gets the GPU that did not ask for it.

    One that named no provider gets CUDA by our own variable, too. One that named others has what
    the application's knob, or the code itself, puts there; where that took what the installed
    onnxruntime has, another onnxruntime is enough. Code that looked at what it has may ask then:
    of an application that has been read it is known whether it does.
    """
    session, maker = group.first, group.made.maker
    names = asked_names(session)
    if packed and CUDA not in session.available:
        yield _packed(packed)
    elif CUDA not in session.available:
        by_itself = [knob.application for knob in knobs if knob.by_itself]
        if by_itself:
            yield reason("session-by-itself", application=by_itself[0])
            return
        if len(names) > 1 and set(names) == set(session.available):
            yield reason("session-everything")
            return
        if names and session.looked and not knobs:
            yield reason("session-looked")
            return
        yield reason("session-build-without")
    turned = [knob for knob in knobs if knob.kind != "none"]
    for knob in turned:
        yield reason(f"session-knob-{knob.kind}", application=knob.application, how=knob.how)
    if turned:
        return
    if maker is None or not maker.name:
        yield reason("session-providers")
    elif names:
        read = any(knob.application == maker.name for knob in knobs)
        yield reason("session-line" if read else "session-line-unread", application=maker.name)
    else:
        yield reason("session-way-out", application=maker.name)
