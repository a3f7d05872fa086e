"""Read the modules that travel in the wheel of `companions`.

Shell.
"""

from __future__ import annotations

from importlib.resources import files

TRAVEL = {"__init__.py": "autostart.py", "load.py": "autoload.py"}
"""Their names there, and here."""


def read() -> dict[str, str]:
    """Return the text of each module by the name that it has in the wheel."""
    folder = files("ortgpu_fix")
    return {name: (folder / own).read_bytes().decode() for name, own in TRAVEL.items()}
