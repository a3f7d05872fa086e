"""`--keep`, `--no-keep`: pip's configuration of an environment, and what speaks against it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..companions.build import LocalWheel
from ..companions.contents import KEEP
from ..companions.keep import (
    OLDEST_PIP,
    configuration_text,
    constraint_address,
    is_ours,
    keep_wheel,
    written_address,
)
from ..errors import Error
from ..facts.target import Target
from ..plan.model import Plan
from ..resolve.options import PlanOptions
from ..versions import at_least

CONFIGURATION = "pip.ini" if sys.platform == "win32" else "pip.conf"
"""In the root of an environment (https://pip.pypa.io/en/stable/topics/configuration/)."""


def pip_configuration(target: Target, options: PlanOptions, environ: Mapping[str, str]) -> str:
    """Return the text that the environment's configuration of pip is to have.

    What a user has changed in the file since stays, and where nothing is asked nothing is refused.
    Raises Error `keep-system` where the environment is no venv and none of conda, `keep-pip-old`,
    `keep-own` where the file is the user's, `keep-moved` where it is of another place, `keep-hides`
    where it would hide another constraint, and `keep-changed` where it is to go and holds more than
    we wrote.
    """
    from ..index.config import pip_constraints

    file, purelib = Path(target.prefix, CONFIGURATION), Path(target.purelib)
    ours, address = configuration_text(purelib), constraint_address(purelib)
    installed = target.find(KEEP) is not None
    text = _text_of(file)
    if options.keep is None:
        return ours if text is None else text
    if not options.keep:
        if installed and text is not None and not is_ours(text):
            raise Error("keep-changed", file=file)
        return ours
    if target.kind not in {"venv", "conda"}:
        raise Error("keep-system", path=target.prefix)
    if target.pip_version is not None and not at_least(target.pip_version, OLDEST_PIP):
        raise Error("keep-pip-old", version=target.pip_version, oldest=OLDEST_PIP)
    if text is not None and not (installed and address in text):
        raise Error("keep-moved" if installed and is_ours(text) else "keep-own", file=file)
    if others := [one for one in pip_constraints(environ) if one != address]:
        raise Error("keep-hides", others=", ".join(others))
    return text or ours


def keep_moved(target: Target) -> bool:
    """Tell whether what `--keep` wrote is of the place where this environment was before."""
    from ..index.folder import local_path

    written = written_address(_text_of(Path(target.prefix, CONFIGURATION)) or "")
    here = constraint_address(Path(target.purelib))
    return written is not None and local_path(written).resolve() != local_path(here).resolve()


def _text_of(file: Path) -> str | None:
    """Return the text of `file`, nothing in it where it cannot be read, None where none is."""
    try:
        if file.is_file():  # a pipe would be waited for
            return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "" if os.path.lexists(file) else None


def wheels_to_keep(
    plan: Plan, target: Target, options: PlanOptions, environ: Mapping[str, str]
) -> list[LocalWheel]:
    """Make the wheel that tells pip to leave the set, where `plan` has it."""
    text = pip_configuration(target, options, environ)
    return [
        keep_wheel(companion.version, Path(target.purelib), CONFIGURATION, text)
        for companion in plan.companions
        if companion.name == KEEP
    ]
