"""Whether two sets of tables say the same of every release, however their rows are grouped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

Said = dict[tuple[object, ...], object]


def said(tables: Mapping[str, Mapping[str, Any]], platform: str) -> Said:
    """Return what the tables say of each release for a platform."""
    found: Said = {}
    for row in tables["onnxruntime"]["build"]:
        if row["platform"] == platform:
            found["onnxruntime-gpu", row["version"]] = row
    for row in tables["nvidia"]["distribution"]:
        found |= _of_distribution(row, platform)
    for row in tables["toolkits"]["toolkit"]:
        missing = [name for name, places in row.get("missing", {}).items() if platform in places]
        found["cuda-toolkit", row["version"]] = {**row, "missing": missing}
    for kind in ("torch", "companion"):
        for row in tables["torch"][kind]:
            if row["platform"] == platform:
                found[kind, row.get("name"), row["version"]] = row
    beside = (row for kind in ("plugin", "wheel") for row in tables["plugins"][kind])
    return found | {
        (row.get("name"), row.get("python"), row["version"]): row
        for row in beside
        if row["platform"] == platform
    }


def _of_distribution(row: Mapping[str, Any], platform: str) -> Said:
    found: Said = {}
    for release in row["releases"]:
        if release["platform"] != platform:
            continue
        version = release["version"]
        files = [
            (block["libraries"], sorted(block["links"]), sorted(block["loads"]))
            for block in row.get("files", ())
            if block["platform"] == platform and version in block["versions"]
        ]
        code = [
            (sorted(block["sass"]), sorted(block["ptx"]))
            for block in row.get("code", ())
            if block["platform"] == platform
            and Version(block["first"]) <= Version(version) <= Version(block["last"])
        ]
        found[row["name"], version] = (release, files, code)
    return found
