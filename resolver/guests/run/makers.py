"""Find whose code made a session: the distribution that a file belongs to.

Shell: reads the RECORD of what lies beside the file.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

from .events import Frame, InferenceSession
from .verdicts import MadeBy, Maker

_PACKAGES = re.compile(r"^(.*[/\\](?:site|dist)-packages)[/\\](.+)$")
_STANDARD = re.compile(r"[/\\]lib(?:64)?[/\\]python3\.\d+[/\\]|.*[/\\]Lib[/\\](\w+)|^<")
"""A file of Python's own, or of none; on Windows where the module in `Lib` is one of Python's."""


def made_by(session: InferenceSession) -> MadeBy:
    """Return who made a session: of its frames those of distributions, and of the program."""
    makers: list[Maker] = []
    caller: Frame | None = None
    first: Maker | None = None
    for frame in session.frames:
        inside = _PACKAGES.match(frame.file)
        if inside:
            name, version = _distribution(inside[1], inside[2].replace("\\", "/"))
            maker = Maker(name, version, frame)
            if all(name != each.name for each in makers):
                makers.append(maker)
        elif (own := _STANDARD.search(frame.file)) and own[1] in {None, *sys.stdlib_module_names}:
            continue
        else:
            maker = Maker("", "", frame)
            caller = caller or frame
        first = first or maker
    return MadeBy(first, tuple(each for each in makers if each != first), caller)


@functools.cache
def _distribution(root: str, path: str) -> tuple[str, str]:
    """Return name and version of the distribution with this file; without one the folder's name."""
    top = path.partition("/")[0]
    folders = sorted(Path(root).glob("*.dist-info"))
    likely = [each for each in folders if each.name.lower().startswith(top.lower() + "-")]
    for folder in dict.fromkeys([*likely, *folders]):
        if _lists(folder / "RECORD", path):
            name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
            return name.replace("_", "-").lower(), version
    return top.removesuffix(".py"), ""


def _lists(record: Path, path: str) -> bool:
    try:
        text = record.read_text("utf-8", "replace")
    except OSError:
        return False
    return text.startswith(f"{path},") or f"\n{path}," in text
