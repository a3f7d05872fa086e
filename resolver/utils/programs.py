"""Find the programs of the user that we start by ourselves, and never where we happen to be.

The current folder may be a checkout that somebody else filled. Windows looks there first, in
`shutil.which` (of every Python before 3.12) as when a program is started by its name alone;
elsewhere an empty or relative folder of PATH leads there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def find_program(name: str, environ: Mapping[str, str], *more: str) -> str | None:
    """Return the path of the program `name` in a folder of PATH, or in one of `more`, or None.

    On Windows with one of the endings of PATHEXT, unless the name has one.
    """
    names = [name]
    if sys.platform == "win32":
        endings = environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
        if not name.upper().endswith(tuple(ending.upper() for ending in endings if ending)):
            names = [name + ending for ending in endings]
    for folder in (*environ.get("PATH", os.defpath).split(os.pathsep), *more):
        if os.path.isabs(folder):  # noqa: PTH117 - a command is found fast
            for found in (os.path.join(folder, each) for each in names):  # noqa: PTH118
                if os.path.isfile(found) and os.access(found, os.X_OK):  # noqa: PTH113
                    return found
    return None
