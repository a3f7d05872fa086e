"""The tool that manages a project's environment, by its lock or by the folder's name."""

from __future__ import annotations

from pathlib import PurePath

LOCKS = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock"}
"""The lock beside an environment in the folder of its project."""
_ELSEWHERE = {"poetry": ("pypoetry", "virtualenvs"), "pdm": ("pdm", "venvs")}
"""The tool's own folder, and the folder of environments in it."""


def tool_of_folder(prefix: str) -> str | None:
    """Return the tool that manages the environment at `prefix` in the tool's folder, or None."""
    *above, folder, _ = ("", "", *PurePath(prefix).parts)
    for tool, (home, name) in _ELSEWHERE.items():
        if folder == name and home in above:
            return tool
    return None
