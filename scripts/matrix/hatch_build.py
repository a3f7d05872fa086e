"""What hatchling does beside its own when it builds the wheel: put `compiled.jsonl` into it.

Only hatchling imports this (`[tool.hatch.build.targets.wheel.hooks.custom]` in `pyproject.toml`):
for `pip install .`, `uv tool install .`, a wheel of the sdist, and from git alike. Nothing is
written into the checkout, which may be read-only.
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledTables(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Makes the tables that the program reads."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add `compiled.jsonl`, made of the TOML files of `data/`."""
        del version
        self.folder = tempfile.TemporaryDirectory()
        own = runpy.run_path(str(Path(self.root, "scripts/matrix/compile_tables.py")))
        path = own["write_compiled"](Path(self.folder.name))
        build_data["force_include"][str(path)] = f"ortgpu_fix/data/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made."""
        del version, build_data, artifact_path
        self.folder.cleanup()
