# Copyright (c) The authors of ortgpu-fix
# MIT License (see LICENSE of ortgpu-fix, https://opensource.org/license/mit)

"""Which wheels of a folder on the controller a host needs."""

from __future__ import annotations

from pathlib import Path


def wheels_for(folder: Path, plan: dict, target: dict) -> list[Path]:
    """Return the wheels of `folder` that the `plan` installs, or that pip may choose with them.

    Of the set itself only what the plan names, for the folder has the sets of other groups, too; of
    what it requires every wheel that fits the `target`, `{"python": "3.11.7", "machine": "x86_64"}`.
    What the program makes itself is left out. Raises OSError where the folder cannot be read.
    """
    files = {row["file"] for row in plan["install"] if "file" in row}
    unnamed = {_project(row["name"]) for row in plan["install"] if "file" not in row}
    selected = {
        _project(row["name"]) for row in (*plan["selection"]["packages"], *plan["companions"])
    }

    def wanted(file: str) -> bool:
        project = _project(file.partition("-")[0])
        others = project.startswith("nvidia_") and "torch" not in unnamed
        if project not in unnamed and (project in selected or others):
            return file in files
        return _fits(file, target)

    folder.stat()  # glob is silent where there is nothing
    return [path for path in sorted(folder.glob("*.whl")) if wanted(path.name)]


def _project(name: str) -> str:
    """Return a project's name as wheels are called."""
    return name.lower().replace("-", "_").replace(".", "_")


def _fits(file: str, target: dict) -> bool:
    """Tell whether the tags of a wheel's file name can fit; pip decides in the end."""
    python, abi, platform = file.removesuffix(".whl").rsplit("-", 3)[1:]
    major, minor = target["python"].split(".")[:2]
    pythons = {f"cp{major}{minor}", f"py{major}{minor}", f"py{major}"}
    return (bool(pythons & set(python.split("."))) or abi == "abi3") and (
        platform == "any" or platform.endswith(target["machine"])
    )
