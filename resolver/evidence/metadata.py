"""Requirements in a wheel's METADATA file."""

from __future__ import annotations

import re
from email.parser import HeaderParser

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def requirements(text: str) -> list[str]:
    """Return the Requires-Dist lines that belong to no extra, as written, sorted."""
    return sorted(line for line in all_requirements(text) if not _EXTRA.search(line))


def extras(text: str) -> dict[str, list[str]]:
    """Return the requirements of each extra, without the marker that names it, sorted."""
    found: dict[str, list[str]] = {}
    for line in all_requirements(text):
        match = _EXTRA.search(line)
        if match:
            found.setdefault(match[1], []).append(line.partition(";")[0].strip())
    return {name: sorted(found[name]) for name in sorted(found)}


def all_requirements(text: str) -> list[str]:
    """Return the Requires-Dist lines as written, in the file's order."""
    headers = HeaderParser().parsestr(text)
    return [" ".join(str(value).split()) for value in headers.get_all("Requires-Dist", [])]
