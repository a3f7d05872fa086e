"""The tables of the matrix as they were on an earlier day: what came later is taken out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from packaging.version import Version

Tables = dict[str, dict[str, Any]]
GROWING = ("onnxruntime", "nvidia", "toolkits", "torch", "plugins")
"""The tables that hold releases of an index."""


def cut_tables(
    tables: Mapping[str, Mapping[str, Any]], later: Callable[[str, str], bool]
) -> Tables:
    """Return the growing tables without the releases for which `later(name, version)` holds.

    `name` is a distribution: `onnxruntime-gpu`, `nvidia-cublas`, `cuda-toolkit`, `torch`.
    """
    cut = {name: copy.deepcopy(dict(tables[name])) for name in GROWING}
    builds = cut["onnxruntime"]
    builds["build"] = [
        row for row in builds["build"] if not later("onnxruntime-gpu", row["version"])
    ]
    kits = cut["toolkits"]
    kits["toolkit"] = [row for row in kits["toolkit"] if not later("cuda-toolkit", row["version"])]
    torch = cut["torch"]
    torch["torch"] = [row for row in torch["torch"] if not later("torch", row["version"])]
    torch["companion"] = [
        row for row in torch["companion"] if not later(row["name"], row["version"])
    ]
    beside = cut["plugins"]
    beside["plugin"] = [row for row in beside["plugin"] if not later(row["name"], row["version"])]
    beside["wheel"] = [row for row in beside["wheel"] if not later("onnxruntime", row["version"])]
    cut["nvidia"]["distribution"] = [_without(row, later) for row in cut["nvidia"]["distribution"]]
    return cut


def _without(row: dict[str, Any], later: Callable[[str, str], bool]) -> dict[str, Any]:
    name = row["name"]
    releases = [one for one in row["releases"] if not later(name, one["version"])]
    files = [
        {**block, "versions": [one for one in block["versions"] if not later(name, one)]}
        for block in row.get("files", ())
    ]
    code = []
    for block in row.get("code", ()):
        within = [
            one["version"]
            for one in releases
            if one["platform"] == block["platform"]
            and Version(block["first"]) <= Version(one["version"]) <= Version(block["last"])
        ]
        if within:
            ends = sorted(within, key=Version)
            code.append({**block, "first": ends[0], "last": ends[-1]})
    return {
        **row,
        "releases": releases,
        "files": [block for block in files if block["versions"]],
        "code": code,
    }
