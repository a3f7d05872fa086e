"""The target of tests that start no engine: an environment of Python 3.11 that is not there."""

from __future__ import annotations

from typing import Any

from ortgpu_fix.apply.state_folder import Site
from ortgpu_fix.facts.target import Target

TARGET = Target(
    executable="/venv/bin/python",
    version="3.11.7",
    implementation="cpython",
    free_threaded=False,
    platform="linux-x86_64",
    bits=64,
    prefix="/venv",
    base_prefix="/usr",
    purelib="/venv/lib/python3.11/site-packages",
    platlib="/venv/lib/python3.11/site-packages",
    scripts="/venv/bin",
    kind="venv",
    externally_managed=False,
    pth=True,
    libc="glibc 2.35",
    build=None,
    installed=(),
    broken=(),
)


def target_at(site: Site, **changes: Any) -> Target:
    """Return the target with the folders of `site`."""
    folders = {**site._asdict(), "executable": f"{site.prefix}/bin/python"}
    return TARGET._replace(**folders, libc=None)._replace(**changes)
