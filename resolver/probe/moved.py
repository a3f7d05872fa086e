"""Find out whether a virtual environment lies elsewhere than where it was made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ..facts.target import Target
from .libraries import find_text

_PLACE = re.compile(r"^\s*(?:export )?VIRTUAL_ENV=(.+)$", re.MULTILINE)


def find_old_place(target: Target) -> str | None:
    """Return the folder that a moved or copied environment was made in; None: it lies there.

    Its script `activate` names that folder, as venv, virtualenv and uv write it. The scripts that
    pip makes begin with the same folder: in a moved environment they start no Python, or that of
    the old one (https://docs.python.org/3/library/venv.html#how-venvs-work). One that was made to
    be moved (`uv venv --relocatable`) names none.
    """
    if target.kind != "venv":
        return None
    here = Path(target.prefix).resolve()
    places = list(_places(find_text(Path(target.scripts) / "activate") or ""))
    if any(Path(place).resolve() == here for place in places):
        return None
    return places[0] if places else None


def _places(script: str) -> Iterator[str]:
    """Yield the absolute folders: `VIRTUAL_ENV="/srv/app/.venv"`, `export VIRTUAL_ENV=/srv/app`."""
    for written in _PLACE.findall(script):
        try:
            words = shlex.split(written, posix="\\" not in written)
        except ValueError:
            continue
        place = "".join(words[:1]).strip("\"'")
        if "$" not in place and Path(place).is_absolute():
            yield place
