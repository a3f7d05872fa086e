"""A lock as lines for a uv project's pyproject.toml; its uv.lock then holds the hashes.

Everything else is the project's own, so the closure is not pinned here: its limits are, and uv's
lock pins it together with the rest of the project.
"""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement

from ...companions.contents import PLACEHOLDER
from ...plan.wheels import HERE
from ...utils.toml_writer import Rows, Value, single, table
from ..markers import MarkerPlace, marker_for
from ..model import Lock, LockedDistribution, header, locked_distributions
from .words import pin_word

INSTALL = (
    "add these lines to pyproject.toml (where a table is there already, to that table),",
    "then: uv lock && uv sync; uv.lock pins all the rest, with hashes",
    "default-groups: beside those that are there (without the line uv takes `dev`)",
)
GROUP = "gpu"


def uv_lines(lock: Lock) -> str:
    """Return the tables to add to pyproject.toml. Raises as `pylock` does."""
    chosen = locked_distributions(lock, closure=False, beside=_elsewhere(lock), since=lock.python)
    settings: dict[str, Value] = {"default-groups": [GROUP]}
    platforms = {(place.sys_platform, place.platform_machine) for place in lock.places}
    if len(platforms) > 1:  # uv before 0.6.5 ignores the whole table for it
        settings["required-environments"] = Rows(
            [
                f"sys_platform == '{system}' and platform_machine == '{machine}'"
                for system, machine in sorted(platforms)
            ]
        )
    if lock.cuda and PLACEHOLDER not in lock.companions:
        settings["override-dependencies"] = Rows([_elsewhere_only(lock)])
    limits = _limits(lock)
    if lock.cuda and limits:
        settings["constraint-dependencies"] = Rows(limits)
    required = [_requirement(pin_word(pin.name, pin.version), pin.marker) for pin in chosen]
    texts = [
        header(lock, INSTALL),
        single("dependency-groups", {GROUP: Rows(required if lock.cuda else limits)}),
        single("tool.uv", settings),
    ]
    named = {pin.index: _index_name(pin) for pin in chosen if "://" in pin.index}
    sources = _sources(chosen, named)
    if sources:
        texts.append(single("tool.uv.sources", sources))
    texts += [
        table("tool.uv.index", {"name": name, "url": url, "explicit": True})
        for url, name in sorted(named.items())
    ]
    return "\n".join(texts)


def _elsewhere(lock: Lock) -> set[MarkerPlace]:
    """Return a developer's machine that the lock is not for, with each Python of the lock.

    Nothing that is locked is installed there.
    """
    return {replace(place, sys_platform="darwin") for place in lock.places}


def _elsewhere_only(lock: Lock) -> str:
    """Return what overrides every requirement of the CPU build, so that uv never installs it."""
    systems = sorted({place.sys_platform for place in lock.places})
    elsewhere = " and ".join(f"sys_platform != '{system}'" for system in systems)
    return f"{PLACEHOLDER} ; {elsewhere} or python_version < '{lock.python}'"


def _requirement(text: str, marker: str) -> str:
    """Return a requirement where it is for: uv locks for every Python that a project allows."""
    return f"{text} ; {marker}"


def _limits(lock: Lock) -> list[str]:
    """Return the limits of the closure, each with the marker of its targets."""
    ranges = {line for target in lock.targets for line in target.ranges}
    return [
        _requirement(
            line,
            marker_for(
                {target.where for target in lock.targets if line in target.ranges},
                lock.places,
                lock.python,
            ),
        )
        for line in sorted(ranges)
        if Requirement(line).specifier
    ]


def _sources(chosen: tuple[LockedDistribution, ...], named: dict[str, str]) -> dict[str, Value]:
    """Return the source of each distribution that is not from the default index.

    Each has a marker: a developer's machine takes none of them.
    """
    sources: dict[str, list[Value]] = {}
    for pin in chosen:
        if pin.index in named:
            source = {"index": named[pin.index], "marker": pin.marker}
            sources.setdefault(pin.name, []).append(source)
        elif pin.index == HERE:
            for file in pin.files:
                url = file.pinned.url
                source = {"url" if "://" in url else "path": url, "marker": file.marker}
                sources.setdefault(pin.name, []).append(source)
    return {
        name: rows[0] if len(rows) == 1 else Rows(rows) for name, rows in sorted(sources.items())
    }


def _index_name(pin: LockedDistribution) -> str:
    """Return a name for the index of `pin`: `torch-cu128` for …/whl/cu128; uv allows no colon."""
    return f"{pin.name}-{pin.index.rstrip('/').rpartition('/')[2].replace(':', '-')}"
