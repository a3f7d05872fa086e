"""What a project's lock installs whatever extras and groups are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...versions import requirement

_MAIN = frozenset({"main", "default"})
"""The group of what a project itself requires: Poetry's name of it, and PDM's."""


def unconditional(packages: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the names that are installed, each with the markers that must all hold for it.

    `packages` are those of uv.lock, poetry.lock or pdm.lock. uv says who requires what, from the
    project on (https://docs.astral.sh/uv/concepts/resolution/), Poetry from 2.0 on and PDM the
    groups of each package. Of an older Poetry nobody knows: its lock names neither.
    """
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for package in packages:
        by_name.setdefault(str(package["name"]), []).append(package)
    found: dict[str, tuple[str, ...]] = {}
    waiting: deque[tuple[str, tuple[str, ...]]] = deque(
        (name, ())
        for name, rows in by_name.items()
        if any(_is_the_project(lock_package) or _is_of_main(lock_package) for lock_package in rows)
    )
    while waiting:
        name, markers = waiting.popleft()
        if name in found:
            continue
        found[name] = markers
        for package in by_name.get(name, ()):
            for required, marker in _required(package):
                if marker:
                    waiting.append((required, (*markers, marker)))
                else:  # what needs no marker is looked at first
                    waiting.appendleft((required, markers))
    return found


def _is_the_project(package: Mapping[str, Any]) -> bool:
    source = package.get("source")
    return isinstance(source, dict) and not source.keys().isdisjoint({"editable", "virtual"})


def _is_of_main(package: Mapping[str, Any]) -> bool:
    return not package.get("optional") and not _MAIN.isdisjoint(package.get("groups") or ())


def _required(package: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a package of uv.lock requires without an extra; others say it in other words."""
    dependencies = package.get("dependencies")
    for dependency in dependencies if isinstance(dependencies, list) else ():
        if isinstance(dependency, dict):
            marker = str(dependency.get("marker") or "")
            if not marker or requirement(f"x ; {marker}"):
                yield str(dependency["name"]), marker
