"""Reads what `inside.py` printed in the target environment.

Whatever else stands there is passed over: a `.pth` file of the target may print too.
"""

from __future__ import annotations

import json
import re
from typing import get_args

from ..errors import Error
from ..utils.json_reader import Refuse, StrictObject
from .model import LIBC, Kind, OnnxRuntime
from .target import Installed, Target

OLDEST = (3, 8)
"""The oldest Python that an environment may have; uv installs into nothing older."""
_VERSION = re.compile(r"([0-9])\.([0-9]{1,3})\.[0-9]{1,3}((a|b|rc)[0-9]+)?")


def last_json_line(stdout: str) -> str:
    """Return the last line that is the answer; empty where there is none."""
    lines = (line for line in reversed(stdout.splitlines()) if line.startswith('{"version": '))
    return next(lines, "")


def parse_target(stdout: str, interpreter: str) -> Target:
    """Read the answer in `stdout`; `interpreter` is who was asked, for the messages.

    Raises Error `python-garbage` where there is no answer or a field of it is wrong, and
    `python-too-old` where that Python is older than 3.8.
    """

    def garbage(field: str, _problem: str) -> Error:
        return Error("python-garbage", path=interpreter, field=field or "no answer")

    return StrictObject(_parsed(stdout, garbage), refuse=garbage, closed=False).read(_target)


def _parsed(stdout: str, refuse: Refuse) -> object:
    try:
        return json.loads(last_json_line(stdout))
    except (ValueError, RecursionError):
        raise refuse("", "is no JSON") from None


def _target(answer: StrictObject) -> Target:
    version = answer.matching("version", _VERSION, required=True) or ""
    executable = answer.text("executable")
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) < OLDEST:
        raise Error("python-too-old", path=executable, version=version)
    rows = answer.tables("installed", _installed)
    return Target(
        executable=executable,
        version=version,
        implementation=answer.text("implementation"),
        free_threaded=answer.flag("free_threaded", required=True),
        platform=answer.text("platform"),
        bits=answer.integer("bits"),
        prefix=answer.text("prefix"),
        base_prefix=answer.text("base_prefix"),
        purelib=answer.text("purelib"),
        platlib=answer.text("platlib"),
        scripts=answer.text("scripts"),
        kind=answer.choice("environment", get_args(Kind)),
        externally_managed=answer.flag("externally_managed", required=True),
        pip_version=answer.text_or_none("pip"),
        pth=answer.flag("pth", required=True),
        libc=answer.matching("libc", LIBC),
        build=None if answer.null("onnxruntime") else answer.table("onnxruntime", _build),
        installed=tuple(row for row in rows if isinstance(row, Installed)),
        broken=tuple(row for row in rows if isinstance(row, str)),
    )


def _installed(row: StrictObject) -> Installed | str:
    """Return a distribution; of one without a version the path of its metadata."""
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
    )


def _build(row: StrictObject) -> OnnxRuntime:
    return OnnxRuntime(
        distribution=row.text_or_none("distribution"),
        version=row.text_or_none("version"),
        cuda=row.text_or_none("cuda"),
        intact=row.flag("intact", required=True),
    )
