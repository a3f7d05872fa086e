"""The project that an environment is made from: what a plan changes there, and its lock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..companions.build import project_companions
from ..errors import Error
from ..facts.markers import marker_environment
from ..plan.model import Plan
from ..plan.wheels import oldest_python
from ..project.model import WRITTEN, FileChange, Project, Wanted
from ..project.recipe import origin_of, project_changes, wheel_paths
from ..project.recognize import find_project
from ..project.tools import Locked, Tool, find_tool, lock_project, names_of
from ..resolve.unknown_releases import with_installed_releases
from ..utils.process import run
from ..uv.program import Uv
from .inputs import PlanInputs
from .requests import InstallOptions


class ProjectPlan(NamedTuple):
    """What a plan changes in the project of its environment."""

    project: Project
    wanted: Wanted
    changes: tuple[FileChange, ...]
    """The files that people write, and the wheels; the lock comes when the tool has made it."""
    problem: Error | None = None
    """Why nothing of it is changed."""

    @property
    def homes(self) -> dict[Path, bytes]:
        """Return where the two wheels lie, and what the tool notes of each when it installs it."""
        tool, wheels = self.project.tool, wheel_paths(self.project, self.wanted)
        return {path: origin_of(tool, path, content) for path, content in wheels.items()}


def plan_project(plan: Plan, inputs: PlanInputs, asked: InstallOptions) -> ProjectPlan | None:
    """Return what `plan` changes in the project; None where there is none that is written.

    Raises Error `requirements-unreadable`; with `--write` also `project-own-source`,
    `project-hashes` and `project-odd`, which the plan names otherwise.
    """
    if plan.release is None or (inputs.target is None and not asked.requirement):
        return None
    prefix = Path(inputs.target.prefix) if inputs.target else Path()
    project = find_project(prefix, Path.cwd(), asked.requirement)
    if project is None or project.tool not in WRITTEN:
        return None
    matrix, platform = inputs.matrix, inputs.facts.platform.key
    matrix, _ = with_installed_releases(inputs.facts, matrix, inputs.options)
    wheels = project_companions(plan.selection, matrix, platform, matrix.modules, plan.placeholder)
    if not wheels or not (inputs.options.autoload and inputs.options.provide):
        return None
    markers = marker_environment(inputs.facts)
    builds = matrix.builds_of(plan.release, {platform})
    oldest = oldest_python(builds, (), markers["python_version"])
    wanted = Wanted(plan.release, wheels, markers, oldest)
    try:
        changes = project_changes(project, wanted)
    except Error as error:
        if asked.write:
            raise
        return ProjectPlan(project, wanted, (), error)
    return ProjectPlan(project, wanted, (*changes, *_wheels(project, wanted)))


def _wheels(project: Project, wanted: Wanted) -> list[FileChange]:
    """Return the wheels that are not there yet."""
    rows = []
    for path, content in wheel_paths(project, wanted).items():
        before = path.read_bytes() if path.is_file() else None
        if before != content:
            rows.append(FileChange(path, before, content))
    return rows


def require_project(asked: InstallOptions, found: ProjectPlan | None) -> None:
    """Raise Error `project-unknown` where `--write` has nothing that it could write."""
    if asked.write and found is None:
        raise Error("project-unknown")


def tool_of(
    found: ProjectPlan, prefix: Path, environ: Mapping[str, str], uv: Uv, *, offline: bool
) -> Tool | None:
    """Return the tool that locks the project; None where nothing does."""
    if found.project.lock is None:
        return None
    return find_tool(found.project, prefix, environ, run, uv.program, offline=offline)


def locked(found: ProjectPlan, tool: Tool | None, plan: Plan) -> Locked:
    """Return the files that change, with the lock, and what a sync would do besides."""
    coming = [*plan.uninstall, *plan.requires]
    coming += [wheel.name for wheel in (*plan.selection, *plan.install)]
    coming += [wheel.name for wheel in found.wanted.wheels]
    return lock_project(tool, found.project, found.changes, names_of(coming))
