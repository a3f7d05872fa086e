"""How applications ask onnxruntime for the GPU: the rows of `data/applications.toml`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ..versions import newest_first, version
from .fields import row_reader


class Application(NamedTuple):
    """A range of releases of an application, as its wheels show it."""

    name: str
    since: str
    read: str
    """The newest release that was read."""
    asks: Literal["by-itself", "when-told", "never"]
    knob: Literal["argument", "option", "environment", "extra", "none"]
    how: str = ""
    """What a user writes to ask for the GPU; empty where there is nothing to write."""
    runtime: str = ""
    """The onnxruntime without CUDA that it brings along in its own wheels, and uses; or empty."""


read_application = row_reader(Application)


def application_of(rows: Iterable[Application], release: str) -> Application | None:
    """Return the row of a release, of the rows of one application; None where nobody has read it.

    One that is newer than what was read is as the newest.
    """
    asked = version(release)
    fitting = [row for row in rows if asked and newest_first(row.since) <= asked]
    return max(fitting, key=lambda row: newest_first(row.since), default=None)
