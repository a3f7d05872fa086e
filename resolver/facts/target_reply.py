"""Parse what `describe_target` printed in the target environment.

Other lines are skipped: a `.pth` file of the target may print too.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import get_args

from ..errors import Error
from ..utils.json_reader import StrictObject
from .document import read_onnxruntime
from .model import LIBC, Kind
from .target import Installed, Target

OLDEST = (3, 8)
"""The oldest Python that an environment may have; uv installs into nothing older."""
_VERSION = re.compile(r"([0-9])\.([0-9]{1,3})\.[0-9]{1,3}((a|b|rc)[0-9]+)?")


def last_json_line(stdout: str) -> str:
    """Return the last line that is a reply, or an empty text."""
    lines = (line for line in reversed(stdout.splitlines()) if line.startswith('{"version": '))
    return next(lines, "")


def parse_target(stdout: str, interpreter: str) -> Target:
    """Read the reply of `interpreter` in `stdout`.

    Raises Error `python-garbage` (no reply, or a wrong field) and `python-too-old` (below 3.8).
    """

    def garbage(field: str, _problem: str) -> Error:
        return Error("python-garbage", path=interpreter, field=field or "no answer")

    try:
        reply = json.loads(last_json_line(stdout))
    except (ValueError, RecursionError):
        raise garbage("", "is no JSON") from None
    return StrictObject(reply, refuse=garbage, closed=False).read(_target)


def _target(reply: StrictObject) -> Target:
    version = reply.matching("version", _VERSION, required=True) or ""
    executable = reply.text("executable")
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) < OLDEST:
        raise Error("python-too-old", path=executable, version=version)
    rows = reply.tables("installed", _installed)
    return Target(
        executable=executable,
        version=version,
        implementation=reply.text("implementation"),
        free_threaded=reply.flag("free_threaded", required=True),
        platform=reply.text("platform"),
        bits=reply.integer("bits"),
        prefix=reply.text("prefix"),
        base_prefix=reply.text("base_prefix"),
        purelib=reply.text("purelib"),
        platlib=reply.text("platlib"),
        scripts=reply.text("scripts"),
        kind=reply.choice("environment", get_args(Kind)),
        externally_managed=reply.flag("externally_managed", required=True),
        user_site=reply.text_or_none("user_site"),
        pip_version=reply.text_or_none("pip"),
        pth=reply.flag("pth", required=True),
        libc=reply.matching("libc", LIBC),
        build=None if reply.null("onnxruntime") else reply.table("onnxruntime", _onnxruntime),
        installed=tuple(row for row in rows if isinstance(row, Installed)),
        broken=tuple(row for row in rows if isinstance(row, str)),
    )


_onnxruntime = partial(read_onnxruntime, required=True)


def _installed(row: StrictObject) -> Installed | str:
    """Return a distribution, or the metadata path of one without a version."""
    path = row.text("path")
    if row.null("version"):
        return path
    return Installed(
        name=row.text("name"),
        version=row.text("version"),
        metadata_path=path,
        requires=row.texts("requires"),
        installer=row.text_or_none("installer"),
        editable=row.flag("editable"),
        provided=row.flag("provided"),
        missing=row.integer_or_none("missing") or 0,
        libraries=row.texts("libraries"),
    )
