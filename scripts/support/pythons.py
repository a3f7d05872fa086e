"""The Pythons of this machine."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

SECONDS = 20.0
"""How long one may take to say its version; a shim that waits for a terminal never does."""


@functools.cache
def find_python(version: str) -> Path | None:
    """Return an interpreter of `version` (`3.8`) that runs, None where there is none.

    Those of pyenv are looked at first, then the one below us, then PATH. A file of that name need
    not be one: the shim of a Python that is not active exits with 127.
    """
    places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    places.append(Path(sys.base_prefix, "bin", f"python{version}"))
    if sys.platform == "win32":
        places.append(Path(sys.base_prefix, "python.exe"))
    found = shutil.which(f"python{version}")
    if found:
        places.append(Path(found))
    return next((path for path in places if _runs(path, version)), None)


def _runs(path: Path, version: str) -> bool:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run(
            [path, "-E", "-c", code],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.stdout.strip() == version
