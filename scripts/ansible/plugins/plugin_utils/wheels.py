# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Which wheels of a folder on the controller a host needs."""

from __future__ import annotations

from pathlib import Path


def wheels_for(folder: Path, plan: dict, target: dict) -> list[Path]:
    """Return the wheels of `folder` that the `plan` installs, or that pip may choose with them.

    Of the set itself only what the plan names; of what it requires every wheel that fits the
    `target`, `{"python": "3.11.7", "machine": "x86_64"}`. What the program makes itself is left
    out. Raises OSError where the folder cannot be read.
    """
    files = {row["file"] for row in plan["install"] if "file" in row}
    files_unknown = {_name(row["name"]) for row in plan["install"] if "file" not in row}
    chosen = {_name(row["name"]) for row in [*plan["selection"]["packages"], *plan["companions"]]}
    chosen -= files_unknown
    return [
        path
        for path in sorted(folder.iterdir())
        if path.suffix == ".whl"
        and (path.name in files or (_name(path.name) not in chosen and _fits(path.name, target)))
    ]


def _name(text: str) -> str:
    return text.partition("-")[0].lower() if text.endswith(".whl") else text.replace("-", "_")


def _fits(file: str, target: dict) -> bool:
    """Tell whether the tags of a wheel's file name can fit; pip decides in the end."""
    python, abi, platform = file.removesuffix(".whl").rsplit("-", 3)[1:]
    major, minor = target["python"].split(".")[:2]
    pythons = {f"cp{major}{minor}", f"py{major}{minor}", f"py{major}"}
    return (bool(pythons & set(python.split("."))) or abi == "abi3") and (
        platform == "any" or platform.endswith(target["machine"])
    )
