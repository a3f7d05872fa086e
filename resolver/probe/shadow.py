"""Find the onnxruntime that a program would import in place of the environment's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ..facts.target import Target

_FILES = ("onnxruntime/__init__.py", "onnxruntime.py", "onnxruntime.pyc")


def find_shadow(target: Target, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the file that `import onnxruntime` takes before the environment's, or None.

    Python puts before an environment the folder of the program, for which `cwd` stands here, and
    the folders of PYTHONPATH. A folder without `__init__.py` does not go before a package
    (https://docs.python.org/3/library/sys.html#sys.path, PEP 420).
    """
    own = {Path(folder).resolve() for folder in (target.purelib, target.platlib)}
    for folder in _folders_before(environ, cwd):
        if folder.resolve() in own:
            return None
        extensions = (f"onnxruntime{suffix}" for suffix in EXTENSION_SUFFIXES)
        for name in (*_FILES, *extensions):
            if (folder / name).is_file():
                return folder / name
    return None


def _folders_before(environ: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    if not environ.get("PYTHONSAFEPATH"):
        yield cwd
    paths = environ.get("PYTHONPATH", "")
    for entry in paths.split(os.pathsep) if paths else ():
        yield cwd / entry
