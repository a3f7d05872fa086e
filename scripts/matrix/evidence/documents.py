"""Facts that no wheel on the index can tell, with the documents that do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ortgpu_fix.utils.toml_writer import table

if TYPE_CHECKING:
    from collections.abc import Collection

_SIZE_LIMIT = "https://github.com/microsoft/onnxruntime/issues/20737, read 2026-11-21"
_RELEASE_LIST = "https://www.piwheels.org/project/onnxruntime-gpu/, read 2026-11-21"

PUBLISHED = {
    "1.9.0": _SIZE_LIMIT,
    "1.10.0": _SIZE_LIMIT,
    "1.16.1": _RELEASE_LIST,
    "1.16.2": _RELEASE_LIST,
    "1.20.1": _RELEASE_LIST,
    "1.24.2": _RELEASE_LIST,
    "1.24.3": _RELEASE_LIST,
}
"""Releases of onnxruntime-gpu that were once on the index, and who saw them there.

The index limits what a project may keep there, so releases leave it: the next ones belong here.
"""


def gone(there: Collection[str]) -> list[str]:
    """Return a `[[gone]]` table for each release that the index has no more."""
    return [
        table("gone", {"version": version, "source": source})
        for version, source in PUBLISHED.items()
        if version not in there
    ]
