"""The tool that keeps a project's environment: by its lock beside it, or by the folder's name."""

from __future__ import annotations

from pathlib import PurePath

LOCKS = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock"}
"""The lock beside an environment in the folder of its project."""
_ELSEWHERE = {"poetry": ("pypoetry", "virtualenvs"), "pdm": ("pdm", "venvs")}
"""The folder of the tool, and the one in it where it keeps environments outside of projects."""


def tool_of_folder(prefix: str) -> str | None:
    """Return the tool that keeps the environment at `prefix` in a folder of its own, or None."""
    *above, folder, _ = ("", "", *PurePath(prefix).parts)
    for tool, (home, name) in _ELSEWHERE.items():
        if folder == name and home in above:
            return tool
    return None
