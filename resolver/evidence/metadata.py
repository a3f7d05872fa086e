"""Fields of the METADATA and WHEEL files of a wheel.

They are read as pip and Python read them. `packaging.metadata` looks through all fields for each:
a hostile file with 200,000 names would take it minutes.
"""

from __future__ import annotations

import re
from email.parser import HeaderParser

from ..facts.markers import extras_named

_SPACE = re.compile(r"[ \t\r\n]+")


def fields(text: str, *names: str) -> tuple[list[str], ...]:
    """Return the values of each field of `names` in the head of `text`, in the file's order.

    What is folded is one line again. Nothing is raised: what comes after a line that is no field is
    the description.
    """
    head = HeaderParser().parsestr(text)
    return tuple(
        [_SPACE.sub(" ", str(value)).strip(" ") for value in head.get_all(name, [])]
        for name in names
    )


def all_requirements(text: str) -> list[str]:
    """Return the Requires-Dist lines as written, in the file's order."""
    return fields(text, "Requires-Dist")[0]


def requirements(text: str) -> list[str]:
    """Return the Requires-Dist lines that belong to no extra, as written, sorted."""
    return sorted(line for line in all_requirements(text) if not extras_named(line))


def extras(text: str) -> dict[str, list[str]]:
    """Return the requirements of each extra, without the marker that names it, sorted."""
    found: dict[str, list[str]] = {}
    for line in all_requirements(text):
        for extra in extras_named(line)[:1]:
            found.setdefault(extra, []).append(line.partition(";")[0].strip())
    return {name: sorted(found[name]) for name in sorted(found)}
