"""What could install into an environment, as far as that is told without running it.

Imports little, for a plan asks it, too.
"""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Mapping
from importlib import metadata

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ..facts.target import Target
from ..versions import at_least

OLDEST_PIP = "22.2"
"""The first with `--report`."""


def can_install(target: Target, environ: Mapping[str, str]) -> bool:
    """Tell whether there is a pip for `target`, or a uv."""
    return bool(has_own_pip(target) or our_pip(target) or uv_programs(environ))


def has_own_pip(target: Target) -> bool:
    """Tell whether `target` has a pip that is new enough."""
    return at_least(target.pip_version or "", OLDEST_PIP)


def our_pip(target: Target) -> str:
    """Return the version of our own pip; empty where it cannot install into `target`."""
    try:
        pip = metadata.metadata("pip")
    except metadata.PackageNotFoundError:
        return ""
    pythons = SpecifierSet(pip["Requires-Python"] or "")
    return pip["Version"] if pythons.contains(Version(target.version), prereleases=True) else ""


def uv_programs(environ: Mapping[str, str]) -> list[str]:
    """Return the paths of uv on PATH and in the folder of our own scripts."""
    folders = (environ.get("PATH", ""), sysconfig.get_path("scripts"))
    found = dict.fromkeys(shutil.which("uv", path=folder) for folder in folders)
    return [program for program in found if program is not None]
