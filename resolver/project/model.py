"""What an environment is derived from, and what changes there, as values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..companions.build import LocalWheel
from ..companions.contents import LIBRARIES, PLACEHOLDER

FOLDER = "gpu-wheels"
"""Where the two wheels lie, beside the lock: they are small, and committed with it."""
COMMENT = f"the wheels of {FOLDER}/ put onnxruntime on the NVIDIA GPU (written by ortgpu-fix)"
"""Beside our lines, for a colleague."""
WRITTEN = frozenset({"uv", "poetry", "pdm", "pipenv", "requirements", "pip-tools"})
"""The tools whose files this program writes; of the others the lines are named."""


class Project(NamedTuple):
    """The files that an environment is made from."""

    tool: str
    """`uv`, `poetry`, `pdm`, `pipenv`, `pip-tools`, `requirements`, `hatch`, `pixi`, `tox`."""
    root: Path
    """The directory with the lock."""
    files: Mapping[Path, bytes]
    """What people write: pyproject.toml of the root first and then of the members of a workspace,
    a Pipfile, or requirements files."""
    lock: Path | None = None
    """What the tool writes."""


class FileChange(NamedTuple):
    """A file of a project, before and after."""

    path: Path
    """Absolute, with links resolved."""
    before: bytes | None
    """None where it is a new file."""
    after: bytes


class Wanted(NamedTuple):
    """What a project is to have: the two wheels, and where they are for."""

    release: str
    """Of onnxruntime-gpu."""
    wheels: tuple[LocalWheel, ...]
    """As `companions.build.project_companions` makes them."""
    markers: Mapping[str, str]
    """The environment of the target's markers."""
    python: str | None = None
    """The oldest Python that the wheels are for, where the project allows an older one."""

    def _wheel(self, name: str) -> LocalWheel:
        return next(wheel for wheel in self.wheels if wheel.name == name)

    @property
    def placeholder(self) -> LocalWheel:
        """Return the wheel that stands for onnxruntime."""
        return self._wheel(PLACEHOLDER)

    @property
    def libraries(self) -> LocalWheel:
        """Return the wheel that loads the libraries, and requires onnxruntime-gpu and them."""
        return self._wheel(LIBRARIES)

    @property
    def marker(self) -> str:
        """Return the marker of the machines that the wheels are for."""
        return " and ".join(self._terms("==", ">="))

    @property
    def elsewhere(self) -> str:
        """Return the marker of all others."""
        return " or ".join(self._terms("!=", "<"))

    def _terms(self, equal: str, python: str) -> list[str]:
        axes = ("sys_platform", "platform_machine")
        terms = [f"{axis} {equal} '{self.markers[axis]}'" for axis in axes]
        return terms + ([f"python_version {python} '{self.python}'"] if self.python else [])
